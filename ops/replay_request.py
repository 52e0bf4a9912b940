"""What a replay is asked to do, as values."""

from dataclasses import dataclass, field
from pathlib import Path

from ops.archive.episodes import StoredEpisode
from schemas.messages import Split


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which stored episodes are replayed."""

    split: Split | None = None
    min_reward: float | None = None
    """Best reward of its judgements; an episode without any is left out."""
    limit: int | None = None
    """The first so many of those that are selected."""

    def takes(self, stored: StoredEpisode) -> bool:
        """Whether an episode is selected; a chain of which the beginning has aged out never is."""
        if not stored.is_complete or self.split not in (None, stored.trajectory.task.split):
            return False
        if self.min_reward is None:
            return True
        rewards = [given.message.reward for given in stored.judgements]
        return max((reward for reward in rewards if reward is not None), default=float("-inf")) >= self.min_reward


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
