"""The guard against collapse: whether a batch is far worse than what was reached of late, and which version was good. Pure.

A version is good when a batch that was mostly played by it, or by later ones, was not far worse than the best of late.
What the guard remembers stands in `TrainerState`, so a trainer that was killed decides as one that was not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from schemas.messages import Judgement
from schemas.trainer_config import TrainerConfig
from trainer.episodes.consumption import Sampled
from trainer.scores import score

_LATE = 100
"""Batches that were not far worse: what lies further back counts no more, neither the best batch nor a return."""


class GuardMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What the guard knows when a version has been trained."""

    recent: tuple[tuple[float, float], ...] = ()
    """Parse rate and success of the latest batches that were not far worse."""
    num_suspect: int = 0
    """Batches in a row, up to now, that were far worse."""
    good: int = 0
    """The version to return to."""
    candidate: int = 0
    """Good as soon as a batch that was played by it is not far worse."""
    num_healthy: int = 0
    """Batches since the last return that were not far worse."""
    num_returns: int = 0
    """Without so many of those between them that they are forgotten."""
    rate_factor: float = 1.0
    """Of the learning rate."""
    discarded: tuple[tuple[int, int], ...] = ()
    """First and last of the versions that were returned from: what they played is not trained on."""

    @property
    def best_parse_rate(self) -> float:
        return max((parse_rate for parse_rate, _ in self.recent), default=0.0)

    @property
    def best_success(self) -> float:
        return max((success for _, success in self.recent), default=0.0)

    @property
    def needed(self) -> frozenset[int]:
        """Versions whose folders must stay."""
        return frozenset((self.good, self.candidate))

    def plays_for(self, episode: Sampled) -> bool:
        """Whether no discarded version played in the episode."""
        return not any(first <= version <= last for version in episode.versions for first, last in self.discarded)


@dataclass(frozen=True, kw_only=True)
class Health:
    """What the guard looks at in one batch, without what discarded versions played."""

    num_steps: int
    num_parsed: int
    num_scored: int
    num_successes: int
    played: int
    """The version that half of the steps were played by, or later ones."""

    @classmethod
    def of(cls, batch: Sequence[Judgement], memory: GuardMemory) -> "Health":
        counted = [judgement for judgement in batch if memory.plays_for(judgement.trajectory)]
        trajectories = [judgement.trajectory for judgement in counted]
        num_steps = sum(trajectory.num_steps for trajectory in trajectories)
        scores = [given for judgement in counted if (given := score(judgement)) is not None]
        versions = sorted(version for trajectory in trajectories for version in trajectory.versions)
        return cls(
            num_steps=num_steps,
            num_parsed=num_steps - sum(trajectory.num_unparsed for trajectory in trajectories),
            num_scored=len(scores),
            num_successes=sum(given.success for given in scores),
            played=versions[len(versions) // 2] if versions else 0,
        )


class CollapseGuard:
    """Decides for one run."""

    def __init__(self, config: TrainerConfig, *, online: bool) -> None:
        """Offline the batches say nothing about what is being trained: the guard stays out."""
        self._config = config
        self._watches = online and config.guard_batches > 0

    def judge(self, memory: GuardMemory, health: Health, version: int) -> GuardMemory:
        """The memory behind a batch that a trainer holding `version` collected."""
        if not self._watches or health.num_steps == 0:
            return memory
        if self._far_worse(memory, health):
            return msgspec.structs.replace(memory, num_suspect=memory.num_suspect + 1)
        vindicated = health.played >= memory.candidate
        success = health.num_successes / health.num_scored if health.num_scored else 0.0
        forgiven = memory.num_healthy + 1 >= _LATE
        return msgspec.structs.replace(
            memory,
            recent=(*memory.recent, (health.num_parsed / health.num_steps, success))[-_LATE:],
            num_suspect=0,
            num_healthy=memory.num_healthy + 1,
            num_returns=0 if forgiven else memory.num_returns,
            rate_factor=1.0 if forgiven else memory.rate_factor,
            good=version if health.played >= version else memory.candidate if vindicated else memory.good,
            candidate=version if vindicated else memory.candidate,
        )

    def collapsed(self, memory: GuardMemory) -> bool:
        return self._watches and memory.num_suspect >= self._config.guard_batches

    def may_return(self, memory: GuardMemory) -> bool:
        return memory.num_returns < self._config.guard_max_returns

    def returned(self, memory: GuardMemory, version: int) -> GuardMemory:
        """The memory of version `version` + 1, which holds the good version's weights again."""
        return msgspec.structs.replace(
            memory,
            num_suspect=0,
            num_healthy=0,
            good=version + 1,
            candidate=version + 1,
            num_returns=memory.num_returns + 1,
            rate_factor=memory.rate_factor * self._config.guard_lr_factor,
            discarded=(*memory.discarded, (memory.good + 1, version)),
        )

    def _far_worse(self, memory: GuardMemory, health: Health) -> bool:
        config = self._config
        return _below(health.num_parsed, health.num_steps, config.guard_parse_rate * memory.best_parse_rate) or _below(
            health.num_successes, health.num_scored, config.guard_success * memory.best_success
        )


def _below(count: int, total: int, bound: float) -> bool:
    """Whether count / total is below the bound by more than chance explains: two standard errors of a share.

    Example: none of 6 is below 0.5 (0.5 - 2 * 0.204 > 0) and not below 0.25; none of 64 is below 0.25.
    """
    return total > 0 and count / total < bound - 2.0 * math.sqrt(bound * (1.0 - bound) / total)
