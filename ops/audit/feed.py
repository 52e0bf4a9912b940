"""Recounts the judgements that a run's versions are to consume. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ops.audit.ledger import Ruled
from schemas.config import Config
from trainer.episodes.passes import Passes, Position


@dataclass(frozen=True, kw_only=True)
class Feed:
    """How a trainer is fed."""

    rubric: str
    """Whose judgements are consumed."""
    batch: int
    """Judgements that a version consumes; the last one of a pass takes what is left."""
    passes: Passes = Passes(None)

    @classmethod
    def of(cls, config: Config) -> "Feed":
        """Raises `ConfigurationError` for offline training on a data set of unknown size."""
        return cls(
            rubric=config.bus_config.trained_rubric,
            batch=config.env_config.train_tasks_rollout_size,
            passes=Passes.of(config.feeder_config),
        )

    def counted(self, ruled: Sequence[Ruled]) -> list[int]:
        """Sequences of the rubric's training judgements; online, demonstrations are passed over."""
        offline = self.passes.num_stored is not None
        return [
            record.seq
            for record in ruled
            if record.rubric == self.rubric and record.trains and (offline or not record.demonstrates)
        ]

    def size(self, position: Position) -> int:
        remaining = self.passes.remaining(position)
        return self.batch if remaining is None else min(self.batch, remaining)

    def next(self, counted: Sequence[int], position: Position) -> list[int]:
        """What the version behind `position` consumes; fewer than `size` when JUDGED does not hold so many."""
        first = bisect_right(counted, position.seq)
        return list(counted[first : first + self.size(position)])
