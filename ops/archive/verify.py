"""Checks every hash of an archive and compares every column with the bytes it repeats. Reads all, changes nothing."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from bus.subjects import Subjects
from ops.archive.archive_source import naming, num_groups, read_group
from ops.archive.folder import ArchiveFolder, Gap, Part, PartFolder, require_sound
from ops.archive.screenshots import CutRecord, ScreenshotStore, join
from ops.archive.tables import (
    Row,
    cut_records,
    judgement_columns,
    read_judgement,
    read_trajectory,
    trajectory_columns,
)
from schemas.errors import ArchiveDamaged


@dataclass
class Verified:
    """What an archive holds. `damaged` names every fault that was found."""

    num_episodes: int = 0
    num_records: int = 0
    num_judgements: int = 0
    num_screenshots: int = 0
    num_bytes: int = 0
    """Of all parts and screenshots that are referred to."""
    num_gaps: int = 0
    damaged: list[str] = field(default_factory=list)


def verify(folder: ArchiveFolder, progress: Callable[[Verified], None] = lambda _: None) -> Verified:
    """Raises `ConfigurationError` when there is no archive; damage is reported, not raised."""
    subjects = Subjects(folder.describe().run)
    found = Verified(num_gaps=len(folder.gaps()))
    check = _Check(folder.screenshots, found)
    for parts, row_check, stream in (
        (folder.trajectories, check.episode, subjects.trajectories),
        (folder.judgements, check.judgement, subjects.judged),
    ):
        known = _Sequences(gap for gap in folder.gaps() if gap.stream == stream)
        for part in _parts(parts, found):
            for row in _rows(part, found):
                if lost := known.lost_before(row["seq"]):
                    found.damaged.append(f"{parts.path}: {lost} in no part and in no gap")
                try:
                    with naming(part.path):
                        row_check(row)
                except ArchiveDamaged as error:
                    found.damaged.append(str(error))
            known.skip_to(part.last_seq)
            progress(found)
    return found


class _Sequences:
    """Whether every sequence of a stream is in a part, or in a gap that is written down: a lost part leaves no other trace."""

    def __init__(self, gaps: Iterable[Gap]) -> None:
        self._gaps = sorted((gap.first_seq, gap.last_seq) for gap in gaps)
        self._seq = 0

    def lost_before(self, seq: int) -> str:
        """Of the sequences behind the row before; empty: none."""
        first, self._seq = self._seq + 1, seq
        for begin, end in self._gaps:
            if begin <= first <= end:
                first = end + 1
        return f"sequences {first} to {seq - 1}" if first < seq else ""

    def skip_to(self, seq: int) -> None:
        """Behind a part, of which damage was named already."""
        self._seq = seq


def _parts(parts: PartFolder, found: Verified) -> tuple[Part, ...]:
    try:
        return parts.parts()
    except ArchiveDamaged as error:
        found.damaged.append(str(error))
        return ()


def _rows(part: Part, found: Verified) -> Iterator[Row]:
    found.num_bytes += part.path.stat().st_size
    last_seq = part.first_seq - 1
    try:
        require_sound(part)
        for group in range(num_groups(part)):
            for row in read_group(part, group):
                if row["seq"] <= last_seq:
                    raise ArchiveDamaged(f"{part.path}: sequence {row['seq']} does not follow {last_seq}")
                last_seq = row["seq"]
                yield row
        if last_seq != part.last_seq:
            raise ArchiveDamaged(f"{part.path} ends at sequence {last_seq}")
    except ArchiveDamaged as error:
        found.damaged.append(str(error))


@dataclass
class _Check:
    screenshots: ScreenshotStore
    found: Verified
    _sound: set[str] = field(default_factory=set)
    """Screenshots that were read already."""

    def episode(self, row: Row) -> None:
        self.found.num_episodes += 1
        _compare(row, trajectory_columns(read_trajectory(row)))
        for record in cut_records(row):
            self.found.num_records += 1
            try:
                self._record(record)
            except ArchiveDamaged as error:
                raise ArchiveDamaged(f"episode {row['episode']}: {error}") from error

    def _record(self, record: CutRecord) -> None:
        screenshot = self.screenshots.read(record.screenshot) if record.screenshot is not None else b""
        join(record, screenshot)
        if record.screenshot is not None and record.screenshot not in self._sound:
            self._sound.add(record.screenshot)
            self.found.num_screenshots += 1
            self.found.num_bytes += len(screenshot)

    def judgement(self, row: Row) -> None:
        self.found.num_judgements += 1
        _compare(row, judgement_columns(read_judgement(row).message))


def _compare(row: Row, wanted: Row) -> None:
    """A part may lack a column that is newer than the part."""
    for name, value in wanted.items():
        if name in row and row[name] != value:
            raise ArchiveDamaged(f"column {name} of episode {row['episode']} is {row[name]!r}, the message says {value!r}")


def refuse_damage(folder: ArchiveFolder) -> None:
    """Raises `ArchiveDamaged` naming the first fault: nothing of a damaged archive is used."""
    found = verify(folder)
    if found.damaged:
        raise ArchiveDamaged(f"the archive has {len(found.damaged)} faults, nothing was written: {found.damaged[0]}")
