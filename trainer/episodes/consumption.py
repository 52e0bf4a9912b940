"""Plans one iteration from its judgements. Pure: judgements in, a plan and metrics out."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from schemas.ids import PolicyVersion
from schemas.messages import Judgement
from trainer.scores import is_success, mean_reward, score, success_share


class Sampled(Protocol):
    """An episode, as a trajectory is."""

    @property
    def versions(self) -> Sequence[PolicyVersion]:
        """Oldest policy version of each step."""
        ...


def staleness(episode: Sampled, version: int) -> int:
    """Versions between the oldest that played the episode and the one that trains on it; 0 without a step."""
    return max((version - played for played in episode.versions), default=0)


@dataclass(frozen=True)
class BatchPlan:
    """A batch of judgements, sorted."""

    fresh: tuple[Judgement, ...]
    """Scored, and within the staleness bound."""
    num_stale: int
    """Discarded: older than the bound."""
    num_unscored: int
    """Excluded or without a verdict."""
    num_collapsed: int
    """Discarded: a version that training returned from played in them."""
    histogram: Counter[int] | None
    """Episodes in `fresh` by staleness; None offline, where the versions are those of another run."""
    success: float
    """Share of the successful ones among everything that was scored."""
    reward: float
    """Mean of the same."""
    parse_rate: float
    """Share of the steps whose output could be parsed."""

    @property
    def successes(self) -> tuple[Judgement, ...]:
        return tuple(judgement for judgement in self.fresh if is_success(judgement))

    def metrics(self) -> dict[str, float]:
        return {
            "success": self.success,
            "reward": self.reward,
            "parse_rate": self.parse_rate,
            "discarded_stale": float(self.num_stale),
            "unscored": float(self.num_unscored),
            "discarded_collapsed": float(self.num_collapsed),
        } | self._staleness()

    def _staleness(self) -> dict[str, float]:
        if self.histogram is None:
            return {}
        total = sum(self.histogram.values())
        mean = sum(age * count for age, count in self.histogram.items()) / total if total else 0.0
        return {"staleness_mean": mean, "staleness_max": float(max(self.histogram, default=0))} | {
            f"staleness_{age}": float(count) for age, count in sorted(self.histogram.items())
        }


def plan_batch(
    batch: Sequence[Judgement], *, version: int, bound: int | None, plays_for: Callable[[Sampled], bool] = lambda _: True
) -> BatchPlan:
    """Sorts the judgements that one iteration consumes, for a trainer that holds `version`; without a bound all are fresh.

    `plays_for`: False for what must not be trained on, whatever its age.
    """
    given_one = [judgement for judgement in batch if score(judgement) is not None]
    scored = [judgement for judgement in given_one if plays_for(judgement.trajectory)]
    scores = [given for judgement in batch if (given := score(judgement)) is not None]
    fresh = tuple(judgement for judgement in scored if bound is None or staleness(judgement.trajectory, version) <= bound)
    ages = Counter(staleness(judgement.trajectory, version) for judgement in fresh)
    num_steps = sum(judgement.trajectory.num_steps for judgement in batch)
    num_unparsed = sum(judgement.trajectory.num_unparsed for judgement in batch)
    return BatchPlan(
        fresh=fresh,
        num_stale=len(scored) - len(fresh),
        num_unscored=len(batch) - len(given_one),
        num_collapsed=len(given_one) - len(scored),
        histogram=None if bound is None else ages,
        success=success_share(scores) or 0.0,
        reward=mean_reward(scores) or 0.0,
        parse_rate=1.0 - num_unparsed / num_steps if num_steps else 1.0,
    )
