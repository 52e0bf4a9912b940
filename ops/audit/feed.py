"""Recounts the judgements that a run's versions are to consume. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ops.audit.ledger import Ruled
from schemas.config import Config
from schemas.objective_config import ObjectiveConfig
from trainer.episodes.passes import Passes, Position

_Measure = Callable[[Iterator[Ruled], int | None], int]
"""From the judgements that follow, and how many the pass still has (None: no end), how many a version takes."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one version consumes."""

    seqs: tuple[int, ...]
    """On JUDGED, as far as they stand there."""
    size: int
    """How many it takes; more than there are where it cannot have been made yet."""

    @property
    def is_whole(self) -> bool:
        return len(self.seqs) == self.size


@dataclass(frozen=True, kw_only=True)
class Feed:
    """How a trainer is fed."""

    rubric: str
    """Whose judgements are consumed."""
    batch: int
    """Judgements that a version consumes; the last one of a pass takes what is left. With refill, of groups that vary."""
    passes: Passes = Passes(None)
    objective: ObjectiveConfig = ObjectiveConfig()

    @classmethod
    def of(cls, config: Config) -> "Feed":
        """Raises `ConfigurationError` for offline training on a data set of unknown size."""
        return cls(
            rubric=config.bus_config.trained_rubric,
            batch=config.env_config.train_tasks_rollout_size,
            passes=Passes.of(config.feeder_config),
            objective=config.objective_config,
        )

    def counted(self, ruled: Sequence[Ruled]) -> list[Ruled]:
        """The rubric's training judgements; online, demonstrations are passed over."""
        offline = self.passes.num_stored is not None
        return [
            record
            for record in ruled
            if record.rubric == self.rubric and record.trains and (offline or not record.demonstrates)
        ]

    def taken(self, ruled: Sequence[Ruled]) -> Iterator[Taken]:
        """Version after version, without an end."""
        counted, position = self.counted(ruled), Position()
        seqs = [record.seq for record in counted]
        measure = self._refilled() if self.objective.dynamic_sampling == "refill" else self._sized
        while True:
            first = bisect_right(seqs, position.seq)
            size = measure(map(counted.__getitem__, range(first, len(counted))), self.passes.remaining(position))
            taken = Taken(tuple(seqs[first : first + size]), size)
            yield taken
            position = self.passes.after(position, seq=taken.seqs[-1] if taken.seqs else position.seq, count=size)

    def _sized(self, following: Iterator[Ruled], remaining: int | None) -> int:
        return self.batch if remaining is None else min(self.batch, remaining)

    def _refilled(self) -> _Measure:
        """An iteration goes on until enough groups vary, as many as allowed are complete (`dynamic_sampling`), or its pass is
        over, which leaves no group open."""
        from trainer.episodes.groups import Groups, Member, Refilled  # not before: whoever reads a run may have no numpy
        from trainer.estimators import num_members

        groups = Groups(num_members(self.objective))

        def measured(following: Iterator[Ruled], remaining: int | None) -> int:
            iteration, size, is_last = Refilled(self.batch, self.objective), 0, False
            while not is_last and size != remaining:
                size += 1
                if (record := next(following, None)) is None:
                    break
                member = Member(episode=record.episode, group=record.group, attempt=1, reward=record.score)
                is_last = iteration.is_last(groups.arrive(member))
            if size == remaining:
                groups.close()
            return size

        return measured
