"""A stored episode as values: every message byte for byte as the server keeps it, wherever it was read from."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from bus.codec import decode
from schemas.errors import ArchiveDamaged
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import Judgement, Split, Trajectory

IMPORTED = WorkerId("import")
"""Stands in the place of a worker where nobody played or judged: the episode is a conversation of other people."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record of an episode's chain."""

    subject_suffix: str
    """The subject behind `<run>.ep.<shard>.<episode>.`: `task`, `1.start.0`, `1.obs.0`, `1.act.0`, `done`."""
    time_s: float
    """Unix seconds when the server of the run that it was read from stored it."""
    data: bytes


@dataclass(frozen=True, slots=True)
class StoredJudgement:
    """One judgement; episode, split and rubric are those of its subject."""

    episode: EpisodeId
    split: Split
    rubric: str
    time_s: float
    data: bytes

    @property
    def message(self) -> Judgement:
        """Raises `ArchiveDamaged` when the bytes are no judgement, `MessageCorrupt` when they are no message."""
        message = decode(self.data)
        if not isinstance(message, Judgement):
            raise ArchiveDamaged(f"the judgement of {self.episode} under {self.rubric} is a {type(message).__name__}")
        return message


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """One ended episode."""

    episode: EpisodeId
    trajectory: Trajectory
    trajectory_data: bytes
    trajectory_time_s: float
    records: tuple[StoredRecord, ...]
    """The whole chain, all attempts, in order."""
    judgements: tuple[StoredJudgement, ...] = ()
    """One a rubric, in the order in which they were given."""

    @property
    def is_complete(self) -> bool:
        """Whether the chain is there from its task to its end: nothing aged out before it was read."""
        suffixes = [record.subject_suffix for record in self.records]
        return suffixes[:1] == ["task"] and suffixes[-1:] == ["done"]


class EpisodeSource(Protocol):
    """Stored episodes in an order that reading again repeats."""

    def episodes(self) -> AsyncIterator[StoredEpisode]:
        """Every ended episode in the order of TRAJECTORIES, with its judgements."""
        ...

    def trajectories(self) -> AsyncIterator[Trajectory]:
        """The same without chains, screenshots and judgements: how every episode ended."""
        ...

    def judgements(self) -> AsyncIterator[StoredJudgement]:
        """Every judgement in the order of JUDGED, which is the order that a trainer consumes them in."""
        ...

    async def rubrics(self) -> frozenset[str]:
        """By which there are judgements."""
        ...
