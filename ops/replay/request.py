"""Holds what a replay is asked to do, as values."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from ops.archive.episodes import StoredEpisode, StoredJudgement
from schemas.errors import ConfigurationError
from schemas.messages import Split


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which stored episodes are replayed."""

    split: Split | None = None
    min_reward: float | None = None
    """An episode without a reward is left out."""
    rubric: str | None = None
    """Whose judgements count and are taken; None: all, where no choice depends on them."""
    limit: int | None = None
    """The first so many of those that are selected."""

    def takes(self, stored: StoredEpisode) -> bool:
        """Whether an episode is selected; a chain of which the beginning has aged out never is."""
        if not stored.is_complete or self.split not in (None, stored.trajectory.task.split):
            return False
        if self.min_reward is None:
            return True
        rewards = [given.message.reward for given in self.judgements(stored)]
        return max((reward for reward in rewards if reward is not None), default=float("-inf")) >= self.min_reward

    def judgements(self, stored: StoredEpisode) -> tuple[StoredJudgement, ...]:
        """Those of the episode that are taken with it."""
        return tuple(given for given in stored.judgements if self.rubric in (None, given.rubric))

    def check(self, rubrics: Collection[str], *, one: bool) -> None:
        """`one`: whether an episode may have one judgement only, as in training.

        Raises:
            ConfigurationError: it is not clear which judgement counts, or there is none.
        """
        names = ", ".join(sorted(rubrics))
        if self.rubric is not None and self.rubric not in rubrics:
            raise ConfigurationError(f"nothing is judged by {self.rubric} there: write --rubric with one of {names or 'none'}")
        if self.rubric is None and len(rubrics) > 1 and (one or self.min_reward is not None):
            raise ConfigurationError(f"the episodes are judged by {names}: choose one with --rubric")


@dataclass(frozen=True, kw_only=True)
class ReplayRequest:
    """What is to be replayed, and how."""

    source: Path
    """Folder of a run or of an archive."""
    into: Path
    """Folder of the run that receives it."""
    selection: Selection = field(default_factory=Selection)
    rejudge: bool = False
    """Leave the stored judgements out, so that the run's own judge workers judge the trajectories."""
    speed: float | None = None
    """Times faster than the episodes ended; None: as fast as the run takes them."""
