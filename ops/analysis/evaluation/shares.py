"""The shares of an evaluation, from what became of every task's tries; and several seeds' evaluations as one. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ops.analysis.evaluation.estimators import Tries, estimates
from ops.analysis.evaluation.result import Costs, EvaluationResult, Group, TaskDetail, figure
from ops.statistics.shares import Share

_NO_TRIES = Tries(0, 0)
_MEANS = ("mean_steps", "mean_prompt_tokens", "mean_completion_tokens", "mean_seconds")


def with_shares(result: EvaluationResult) -> EvaluationResult:
    """The result with every share that its tries come to."""
    whole = _group(result, tuple(result.tasks))
    judged, planned = whole.judged, Share(whole.num_successes, result.num_planned)
    low, high = judged.interval or (None, None)
    found = estimates(list(result.tasks.values()), result.repeat, result.seed)
    over_all = estimates(_as_failures(result), result.repeat, result.seed)
    return replace(
        result,
        num_episodes=whole.num_scored,
        num_successes=whole.num_successes,
        success=judged.value,
        low=low,
        high=high,
        over_all=figure(planned),
        pass_at=found.pass_at,
        pass_all=found.pass_all,
        pass_at_over_all=over_all.pass_at,
        pass_all_over_all=over_all.pass_all,
        by_difficulty=_groups(result, lambda detail: detail.difficulty),
        by_site=_groups(result, lambda detail: detail.site),
        by_distribution=_groups(result, lambda detail: detail.distribution),
        by_published_split=_groups(result, lambda detail: detail.published_split),
        by_seen=_groups(result, lambda detail: detail.seen),
        by_seed=result.by_seed or {str(result.seed): replace(whole, num_episodes=result.num_planned)},
    )


def _as_failures(result: EvaluationResult) -> list[Tries]:
    """Of every planned task, with what is blocked, invalid or missing as a failure."""
    num_tries = result.num_planned // result.num_tasks
    known = [Tries(each.successes, num_tries) for each in result.tasks.values()]
    return known + [Tries(0, num_tries)] * (result.num_tasks - len(known))


def _groups(result: EvaluationResult, label_of: Callable[[TaskDetail], str]) -> dict[str, Group]:
    tasks: dict[str, list[str]] = {}
    for task, detail in result.task_details.items():
        if label := label_of(detail):
            tasks.setdefault(label, []).append(task)
    return {label: _group(result, tasks[label]) for label in sorted(tasks)}


def _group(result: EvaluationResult, tasks: Sequence[str]) -> Group:
    tries = [result.tasks[task] for task in tasks]
    num_scored = sum(each.scored for each in tries)
    return Group(
        num_successes=sum(each.successes for each in tries),
        num_scored=num_scored,
        num_episodes=num_scored + sum(sum(result.task_details[task].apart.values()) for task in tasks),
    )


def merged(results: Sequence[EvaluationResult]) -> EvaluationResult:
    """Of the same evaluation with several seeds, in their order: one, with every try at each task.

    Means are weighed by the episodes that each seed has played.
    """
    first = results[0]
    tasks = {task: None for result in results for task in result.tasks}
    merged_one = replace(
        first,
        seeds=tuple(seed for result in results for seed in result.seeds),
        num_planned=sum(result.num_planned for result in results),
        reward=_mean([(result.reward, result.num_episodes) for result in results]),
        blocked=_sum([result.blocked for result in results]),
        invalid=_sum([result.invalid for result in results]),
        costs=_costs([result.costs for result in results]),
        by_seed={seed: group for result in results for seed, group in result.by_seed.items()},
        tasks={task: _tries(results, task) for task in sorted(tasks)},
        task_details={task: _detail(results, task) for task in sorted(tasks)},
        **{name: _mean([(getattr(result, name), _num_played(result)) for result in results]) for name in _MEANS},
    )
    return with_shares(merged_one)


def _tries(results: Sequence[EvaluationResult], task: str) -> Tries:
    found = [result.tasks.get(task, _NO_TRIES) for result in results]
    return Tries(sum(each.successes for each in found), sum(each.scored for each in found))


def _detail(results: Sequence[EvaluationResult], task: str) -> TaskDetail:
    found = [result.task_details[task] for result in results if task in result.task_details]
    return replace(found[0], apart=_sum([each.apart for each in found]))


def _num_played(result: EvaluationResult) -> int:
    """Whatever became of them: those that never came to an end are of no task's tries."""
    return _group(result, tuple(result.tasks)).num_episodes


def _sum(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _mean(values: Sequence[tuple[float | None, int]]) -> float | None:
    """Values with their weights."""
    known = [(value, weight) for value, weight in values if value is not None and weight > 0]
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known) if known else None


def _costs(costs: Sequence[Costs]) -> Costs:
    priced = [each.policy for each in costs if each.policy is not None]
    return Costs(
        policy=sum(priced) if len(priced) == len(costs) else None,
        judge=sum(each.judge for each in costs),
        policy_prompt_tokens=sum(each.policy_prompt_tokens for each in costs),
        policy_cached_tokens=sum(each.policy_cached_tokens for each in costs),
        policy_completion_tokens=sum(each.policy_completion_tokens for each in costs),
        judge_calls=sum(each.judge_calls for each in costs),
    )
