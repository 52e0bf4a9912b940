"""Folds CHECKPOINTS into the run's versions, in its order: the same ones for every reader.

A version follows the newest one before it, was made from one that stands, and its folder lies beside the others'. What is
announced otherwise is nobody's version: it is left out once, by name, and the next one is awaited. The newest version may be
announced again, behind an announcement that its trainer found to have nothing behind it: that one is left out then. Version 0
begins the run, whatever stands before it.

A server that lost power may have lost the stream's end, and gives its sequences to other records: what is stored later than
all that was looked at comes in the place of what stood there, and its trainer announces again what is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bus.backlog import backlog
from bus.ports import Bus, Record
from bus.skipping import skip
from bus.subjects import Subjects
from bus.trying import look
from schemas.errors import BusUnavailable, MessageCorrupt
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint


def why_not(checkpoint: Checkpoint, known: Mapping[PolicyVersion, Checkpoint], newest: Checkpoint | None) -> str:
    """Why an announcement cannot be the version behind `newest`, for people; empty: it can. Pure.

    `known`: the versions before. With none before, as where they have aged out, any version begins.
    """
    version = checkpoint.version
    if newest is not None and version != newest.version + 1:
        return f"version {version} is announced behind version {newest.version}"
    for name, other in (("parent", checkpoint.parent), ("base", checkpoint.base)):
        if other is not None and other not in known and other >= min(known, default=version):
            return f"{name} {other} of version {version} was never announced"
    return _foreign(checkpoint, newest) if newest is not None else ""


def _foreign(checkpoint: Checkpoint, newest: Checkpoint) -> str:
    version, consumed, before = checkpoint.version, checkpoint.num_trajectories, newest.num_trajectories
    if consumed < before:
        return f"version {version} consumed {consumed} trajectories, and the one before {before}"
    root = folder_of(newest.uri) if newest.version > 0 else newest.root
    if root and folder_of(checkpoint.uri) != root:
        return f"version {version} is announced at {checkpoint.uri}, and the run's versions stand in {root}"
    return ""


def folder_of(uri: str) -> str:
    """The address of the folder that an address lies in."""
    return uri.rstrip("/").rpartition("/")[0]


@dataclass
class Lineage:
    """Takes each record once, or again."""

    known: dict[PolicyVersion, Checkpoint] = field(default_factory=dict)
    newest: Checkpoint | None = None
    seq: int = 0
    """Everything up to here was looked at."""
    stored_at: float = 0.0
    """When the latest of that was stored, in unix seconds."""
    replaced: tuple[Checkpoint, ...] = ()
    """What was announced as the newest version before `newest` was, oldest first."""
    _seqs: dict[PolicyVersion, int] = field(default_factory=dict)

    @property
    def newest_seq(self) -> int:
        return self._seqs[self.newest.version] if self.newest is not None else 0

    def takes(self, record: Record) -> bool:
        """Whether a record of CHECKPOINTS, in the stream's order, is a version of the run."""
        checkpoint = record.message
        assert isinstance(checkpoint, Checkpoint)
        if record.seq <= self.seq:
            if record.time_s <= self.stored_at:
                return self.known.get(checkpoint.version) == checkpoint
            self.ends_at(record.seq - 1)
        self.seq, self.stored_at = record.seq, max(self.stored_at, record.time_s)
        if checkpoint.version == 0 and self.newest is not None and PolicyVersion(0) not in self.known:
            skip(record.subject, self.newest_seq, f"version {self.newest.version} was announced before version 0")
            self.known, self.newest = {}, None
        again = self.newest if self.newest is not None and 0 < self.newest.version == checkpoint.version else None
        known = self.known if again is None else {version: each for version, each in self.known.items() if each != again}
        before = self.newest if again is None else known.get(PolicyVersion(again.version - 1))
        if reason := why_not(checkpoint, known, before):
            skip(record.subject, record.seq, reason)
            return False
        if again is not None:
            skip(
                record.subject, self.newest_seq, f"version {again.version} was announced again behind it, at {checkpoint.uri}"
            )
        self.replaced = (*self.replaced, again) if again is not None else ()
        self.known[checkpoint.version] = self.newest = checkpoint
        self._seqs[checkpoint.version] = record.seq
        return True

    def ends_at(self, seq: int) -> None:
        """Forgets what stood behind the end of the stream."""
        if seq >= self.seq:
            return
        self.known = {version: each for version, each in self.known.items() if self._seqs[version] <= seq}
        self.newest = self.known[max(self.known)] if self.known else None
        self.seq, self.replaced = seq, ()


async def confirmed(lineage: Lineage, bus: Bus, subjects: Subjects) -> Lineage:
    """`catch_up`, with everything that the stream's leader has, and nothing else: for what cannot be taken back.

    Raises:
        BusUnavailable: another server was asked for it, and lags behind.
    """
    stream = subjects.checkpoints
    try:
        record = await bus.confirmed_last(stream, subjects.everything("checkpoint"))
        end = seq = record.seq if record is not None else 0
    except MessageCorrupt as error:
        end, seq = error.seq, 0  # what lies before it is all there is
    lineage.ends_at(end)

    async def through() -> Lineage | None:
        await catch_up(lineage, bus, subjects)
        return lineage if lineage.seq >= seq else None

    if await look(through) is None:
        raise BusUnavailable(f"record {seq} of {stream} cannot be seen yet")
    return lineage


async def catch_up(lineage: Lineage, bus: Bus, subjects: Subjects) -> Lineage:
    """The same lineage, with everything that CHECKPOINTS holds now."""
    stream, everything = subjects.checkpoints, subjects.everything("checkpoint")
    after_seq = lineage.seq if await _is_where_it_was(lineage, bus, subjects) else 0
    async for record in backlog(bus, stream, everything, after_seq=after_seq):
        lineage.takes(record)
    return lineage


async def _is_where_it_was(lineage: Lineage, bus: Bus, subjects: Subjects) -> bool:
    """Whether the last record that was looked at has its sequence still."""
    if not lineage.seq:
        return True
    stored = await bus.read_bytes(subjects.checkpoints, subjects.everything("checkpoint"), after_seq=lineage.seq - 1)
    return bool(stored) and (stored[0].seq, stored[0].time_s) == (lineage.seq, lineage.stored_at)
