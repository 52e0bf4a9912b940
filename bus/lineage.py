"""Folds CHECKPOINTS into the run's versions, in its order: the same ones for every reader.

A version follows the newest one before it, was made from one that stands, and its folder lies beside the others'. What is
announced otherwise is nobody's version: it is left out once, by name, and the next one is awaited. The newest version may be
announced again, behind an announcement that its trainer found to have nothing behind it: that one is left out then. Version 0
begins the run, whatever stands before it.

A server that lost power may have lost the stream's end, and gives its sequences to other records: what is stored later than
all that was looked at comes in the place of what stood there, and its trainer announces again what is lost.

Runs are long and announcements large, so those are kept that are still asked for: the newest, and what these go back to. Of
the others it is known where they stand, and one can be read there.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from bus.backlog import backlog
from bus.ports import Bus, Record
from bus.skipping import skip
from bus.subjects import Subjects
from bus.trying import look
from bus.weight_routes import Catalogue
from schemas.errors import BusUnavailable, MessageCorrupt
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint

NUM_NEWEST = 64


def why_not(checkpoint: Checkpoint, known: Collection[PolicyVersion], newest: Checkpoint | None) -> str:
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

    num_newest: int = NUM_NEWEST
    """Versions that are kept at least."""
    known: dict[PolicyVersion, Checkpoint] = field(default_factory=dict)
    """Those that are kept, oldest first: version 0, up to twice as many, and what these were made of."""
    newest: Checkpoint | None = None
    seq: int = 0
    """Everything up to here was looked at."""
    stored_at: float = 0.0
    """When the latest of that was stored, in unix seconds."""
    replaced: tuple[Checkpoint, ...] = ()
    """What was announced as the newest version before `newest` was, oldest first."""
    seqs: dict[PolicyVersion, int] = field(default_factory=dict)
    """Of all versions, oldest first."""

    @property
    def newest_seq(self) -> int:
        return self.seqs[self.newest.version] if self.newest is not None else 0

    def takes(self, record: Record) -> bool:
        """Whether a record of CHECKPOINTS, in the stream's order, is a version of the run."""
        checkpoint = record.message
        assert isinstance(checkpoint, Checkpoint)
        if record.seq <= self.seq:
            if record.time_s <= self.stored_at:
                return self.seqs.get(checkpoint.version) == record.seq
            self.ends_at(record.seq - 1)
        self.seq, self.stored_at = record.seq, max(self.stored_at, record.time_s)
        if checkpoint.version == 0 and self.newest is not None and PolicyVersion(0) not in self.seqs:
            skip(record.subject, self.newest_seq, f"version {self.newest.version} was announced before version 0")
            self.known, self.seqs, self.newest = {}, {}, None
        again = self.newest if self.newest is not None and 0 < self.newest.version == checkpoint.version else None
        known = self.seqs.keys() if again is None else self.seqs.keys() - {again.version}
        before = self.newest if again is None else self.known.get(PolicyVersion(again.version - 1))
        if reason := why_not(checkpoint, known, before):
            skip(record.subject, record.seq, reason)
            return False
        if again is not None:
            skip(
                record.subject, self.newest_seq, f"version {again.version} was announced again behind it, at {checkpoint.uri}"
            )
        self.replaced = (*self.replaced, again) if again is not None else ()
        self.known[checkpoint.version] = self.newest = checkpoint
        self.seqs[checkpoint.version] = record.seq
        if checkpoint.version % self.num_newest == 0:
            self.known = _asked_for(self.known, self.num_newest)
        return True

    def ends_at(self, seq: int) -> None:
        """Forgets what stood behind the end of the stream."""
        if seq >= self.seq:
            return
        self.seqs = {version: each for version, each in self.seqs.items() if each <= seq}
        self.known = {version: each for version, each in self.known.items() if version in self.seqs}
        self.seq, self.replaced = seq, ()
        self.newest = self.known.get(max(self.seqs)) if self.seqs else None
        if self.newest is None:
            # More is lost than was kept: what is left has to be read anew.
            self.known, self.seqs, self.seq = {}, {}, 0


def _asked_for(known: dict[PolicyVersion, Checkpoint], num_newest: int) -> dict[PolicyVersion, Checkpoint]:
    """The newest, version 0, what the newest are adapters of, and what announced the files first that they are made of."""
    newest = [known[version] for version in sorted(known)[-num_newest:]]
    kept = {PolicyVersion(0), *(each.version for each in newest), *(each.base for each in newest)}
    files = Catalogue.of(known.values()).needed(newest)
    for version, each in known.items():
        brought = files.intersection(file.sha256 for file in each.policy_files)
        if brought:
            kept.add(version)
            files -= brought
    return {version: each for version, each in known.items() if version in kept}


async def announced(lineage: Lineage, bus: Bus, subjects: Subjects, version: PolicyVersion) -> Checkpoint | None:
    """One of the lineage's versions, however old. Raises `BusUnavailable` when it cannot be seen yet."""
    if version in lineage.known or version not in lineage.seqs:
        return lineage.known.get(version)
    record = await bus.get(subjects.checkpoints, lineage.seqs[version])
    if record is None:
        raise BusUnavailable(f"version {version} on {subjects.checkpoints} cannot be seen yet")
    return record.message if isinstance(record.message, Checkpoint) else None


async def all_announced(bus: Bus, subjects: Subjects) -> list[Checkpoint]:
    """Every version of the run, oldest first."""
    lineage, found = Lineage(), dict[PolicyVersion, Checkpoint]()
    async for record in backlog(bus, subjects.checkpoints, subjects.everything("checkpoint")):
        if isinstance(record.message, Checkpoint) and lineage.takes(record):
            found[record.message.version] = record.message
    return [found[version] for version in lineage.seqs]


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
