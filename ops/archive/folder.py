"""The layout of an archive's folder. Where the archiver stands is written nowhere but in the names of the parts.

archive.json        format and run
config.yaml         the run's configuration, as the archiver was started with it
archive.lock        held by the process that writes
gaps.jsonl          what could not be archived, and why
trajectories/       <first>-<last>.parquet: episodes, by their sequences on TRAJECTORIES
judgements/         <first>-<last>.parquet: judgements, by their sequences on JUDGED
                    each with <part>.sha256 beside it, as `sha256sum -c` reads it
screenshots/           <first two hex digits>/<sha256>.<jpg|png>
set_aside/<n>/      parts of what the streams have lost: read by nobody
"""

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec

from ops.archive.durable import make_folder, remove_leftovers, sync, write_whole
from ops.archive.screenshots import ScreenshotStore
from ops.run.folder import RunFolder
from schemas.config import Config
from schemas.errors import ArchiveDamaged, ArchiveError, ConfigurationError
from schemas.file_lock import try_lock
from schemas.ids import RunName

FORMAT = 1
_HASH = ".sha256"
_PART = re.compile(r"(\d+)-(\d+)\.parquet\Z")


class Description(msgspec.Struct, frozen=True):
    """What `archive.json` holds."""

    format: int
    run: RunName
    """Names the streams that the sequences belong to."""


class Gap(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of `gaps.jsonl`."""

    stream: str
    first_seq: int
    last_seq: int
    reason: str
    episode: str = ""
    """When it is the chain of one episode that is not whole."""


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One file of rows; the sequences of its first and last row."""

    first_seq: int
    last_seq: int
    path: Path


def require_sound(part: Part) -> None:
    """Raises `ArchiveDamaged` when a part is not, byte for byte, what was written."""
    try:
        wanted = _hash_path(part.path).read_text().split()[0]
        content = part.path.read_bytes()
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise ArchiveDamaged(f"{part.path} or its hash cannot be read ({error})") from error
    if hashlib.sha256(content).hexdigest() != wanted:
        raise ArchiveDamaged(f"{part.path} does not match its hash")


def _hash_path(path: Path) -> Path:
    return path.with_name(path.name + _HASH)


@dataclass(frozen=True)
class PartFolder:
    """The parts of one stream."""

    path: Path

    def parts(self) -> tuple[Part, ...]:
        """In the order of their sequences. Raises `ArchiveDamaged` when two overlap."""
        found = [(match, path) for path in self.path.glob("*.parquet") if (match := _PART.match(path.name))]
        parts = sorted(Part(int(match[1]), int(match[2]), path) for match, path in found)
        for part, following in pairwise(parts):
            if following.first_seq <= part.last_seq:
                raise ArchiveDamaged(f"{part.path} and {following.path.name} hold the same sequences")
        return tuple(parts)

    @property
    def position(self) -> int:
        """Sequence up to which the stream is archived."""
        return max((part.last_seq for part in self.parts()), default=0)

    def write(self, first_seq: int, last_seq: int, content: bytes) -> None:
        path = self.path / f"{first_seq:012d}-{last_seq:012d}.parquet"
        write_whole(_hash_path(path), f"{hashlib.sha256(content).hexdigest()}  {path.name}\n".encode())
        write_whole(path, content)
        sync(self.path)

    def set_aside(self, parts: Sequence[Part]) -> Path:
        """Moves the last parts to where nobody reads them, the newest first, and says where."""
        places = (self.path.parent / "set_aside" / str(number) / self.path.name for number in itertools.count(1))
        place = next(place for place in places if not place.exists())
        make_folder(place)
        for part in sorted(parts, reverse=True):
            for path in (_hash_path(part.path), part.path):
                if path.exists():
                    path.rename(place / path.name)
        sync(place)
        sync(self.path)
        return place

    def remove_orphans(self) -> None:
        """Removes the hashes of parts that a killed writer never came to write."""
        parts = {_hash_path(part.path) for part in self.parts()}
        for path in self.path.glob(f"*{_HASH}"):
            if path not in parts:
                path.unlink()


@dataclass(frozen=True)
class ArchiveFolder:
    """Paths of one archive."""

    path: Path

    @property
    def trajectories(self) -> PartFolder:
        return PartFolder(self.path / "trajectories")

    @property
    def judgements(self) -> PartFolder:
        return PartFolder(self.path / "judgements")

    @property
    def screenshots(self) -> ScreenshotStore:
        return ScreenshotStore(self.path / "screenshots")

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def is_archive(self) -> bool:
        return self._description.is_file()

    @property
    def _description(self) -> Path:
        return self.path / "archive.json"

    @property
    def _gaps(self) -> Path:
        return self.path / "gaps.jsonl"

    def describe(self) -> Description:
        """Raises `ConfigurationError` when there is no archive, `ArchiveError` when it is of a newer format."""
        try:
            description = msgspec.json.decode(self._description.read_bytes(), type=Description)
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigurationError(f"{self.path} holds no archive: give the folder that `millrace archive` wrote") from error
        if description.format > FORMAT:
            raise ArchiveError(f"{self.path} has format {description.format}, this version reads {FORMAT}: upgrade millrace")
        return description

    @contextmanager
    def writing(self, run: RunName, config: str) -> Iterator[None]:
        """Makes the folder this process's own, and removes what a killed writer left.

        Raises:
            ConfigurationError: the folder cannot be written or locked, or holds another run's archive.
            ArchiveError: another process writes here.
        """
        try:
            make_folder(self.path)
            lock = (self.path / "archive.lock").open("w")
        except OSError as error:
            raise ConfigurationError(f"the archive {self.path} cannot be written ({error.strerror})") from error
        with lock:
            if not try_lock(lock, self.path):
                raise ArchiveError(f"another archiver writes to {self.path}: let it, or choose another folder")
            remove_leftovers(self.path)
            self._begin(run, config)
            self.trajectories.remove_orphans()
            self.judgements.remove_orphans()
            yield

    def _begin(self, run: RunName, config: str) -> None:
        if self.is_archive and (known := self.describe()).run != run:
            raise ConfigurationError(
                f"{self.path} is the archive of run {known.run}: choose another archive_config.folder for run {run}"
            )
        for folder in (self.trajectories.path, self.judgements.path, self.path / "screenshots"):
            make_folder(folder)
        write_whole(self.config, config.encode())
        if not self.is_archive:
            write_whole(self._description, msgspec.json.encode(Description(FORMAT, run)) + b"\n")
        sync(self.path)

    def gaps(self) -> tuple[Gap, ...]:
        try:
            lines = self._gaps.read_bytes().splitlines()
        except FileNotFoundError:
            return ()
        return tuple(msgspec.json.decode(line, type=Gap) for line in lines)

    def record_gaps(self, found: list[Gap]) -> None:
        """Adds gaps. One that begins where a known one does takes its place: it was met again after a kill, and has grown."""
        if not found:
            return
        gaps = {(gap.stream, gap.first_seq, gap.episode): gap for gap in (*self.gaps(), *found)}
        write_whole(self._gaps, b"".join(msgspec.json.encode(gap) + b"\n" for gap in gaps.values()))
        sync(self.path)


def archive_folder(run: RunFolder, config: Config) -> ArchiveFolder:
    """Where the archive of a run is: `archive_config.folder`, or beside its streams."""
    configured = config.archive_config.folder
    return ArchiveFolder(Path(configured).expanduser().resolve() if configured else run.path / "archive")
