"""Metrics of a batch of judgements, whatever is trained on it. Pure; docs/metrics.md lists their names."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from schemas.messages import Judgement, Outcome, Verdict
from trainer.scores import Score, mean_reward, score, success_share


def batch_metrics(batch: Sequence[Judgement]) -> dict[str, float]:
    """Of a batch that is trained on. Shares are of all its episodes, success of those that were scored."""
    return _by_difficulty(batch) | _episodes(batch) | _ends(batch)


def round_metrics(judged: Sequence[Judgement]) -> dict[str, float]:
    """Of a held-out round."""
    scores = [given for judgement in judged if (given := score(judgement)) is not None]
    metrics = {"episodes": float(len(judged)), "scored": float(len(scores))}
    success, reward = success_share(scores), mean_reward(scores)
    if success is not None and reward is not None:
        metrics |= {"success": success, "reward": reward}
    return metrics | _by_difficulty(judged) | _episodes(judged)


def token_metrics(num_tokens: Sequence[int]) -> dict[str, float]:
    """Of the episodes whose steps were fetched: tokens sampled in each."""
    known = [count for count in num_tokens if count]
    return {"episode_tokens": _mean(known)} if known else {}


def _by_difficulty(batch: Sequence[Judgement]) -> dict[str, float]:
    scores: defaultdict[int, list[Score]] = defaultdict(list)
    for judgement in batch:
        if (given := score(judgement)) is not None:
            scores[judgement.trajectory.task.difficulty].append(given)
    return {
        f"success_difficulty_{difficulty}": sum(given.success for given in scores[difficulty]) / len(scores[difficulty])
        for difficulty in sorted(scores)
    }


def _episodes(batch: Sequence[Judgement]) -> dict[str, float]:
    """Means over the episodes that were played at all."""
    played = [judgement.trajectory for judgement in batch if judgement.trajectory.num_steps]
    if not played:
        return {}
    num_steps = sum(trajectory.num_steps for trajectory in played)
    return {
        "episode_steps": num_steps / len(played),
        "episode_s": _mean(trajectory.timings.total_s for trajectory in played),
        "reset_s": _mean(trajectory.timings.reset_s for trajectory in played),
        "step_observe_s": sum(trajectory.timings.observe_s for trajectory in played) / num_steps,
        "step_policy_s": sum(trajectory.timings.policy_s for trajectory in played) / num_steps,
        "step_act_s": sum(trajectory.timings.act_s for trajectory in played) / num_steps,
        "unparsed": sum(trajectory.num_unparsed for trajectory in played) / num_steps,
    }


def _ends(batch: Sequence[Judgement]) -> dict[str, float]:
    """How episodes ended, as shares; how judging went."""
    if not batch:
        return {}
    ends = dict.fromkeys(Outcome, 0)
    for judgement in batch:
        ends[judgement.trajectory.outcome] += 1
    return {f"ended_{outcome.value}": count / len(batch) for outcome, count in ends.items()} | {
        "attempts": _mean(judgement.trajectory.attempt for judgement in batch),
        "judge_s": _mean(judgement.judged_s for judgement in batch),
        "judge_errors": sum(judgement.verdict is Verdict.ERROR for judgement in batch) / len(batch),
        "blocked": sum(judgement.blocked for judgement in batch) / len(batch),
    }


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
