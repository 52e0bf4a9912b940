"""Screenshots as files of their own, named by their content: a screenshot that many records show is stored once. Records of
traffic (HAR) are kept in the same way, and called screenshots here.

The screenshot's bytes are cut out of the encoded message, never re-encoded, so that what is left, with the screenshot put
back where it was, gives the identical message. A message that this version cannot read is not cut.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from bus.codec import decode
from ops.archive.durable import make_folder, sync_all, write_whole
from ops.archive.episodes import StoredRecord
from ops.console.media_types import SUFFIXES
from schemas.errors import ArchiveDamaged, MessageCorrupt
from schemas.messages import NetworkRecord, Observation, Screenshot

_HAR = "application/har+gzip"
_SUFFIXES = {**SUFFIXES, _HAR: "har.gz"}


@dataclass(frozen=True, slots=True)
class CutRecord:
    """A chain record without its screenshot."""

    suffix: str
    time_s: float
    data: bytes
    sha256: str
    """Of the whole message, screenshot included."""
    screenshot: str | None = None
    """`<sha256>.<suffix>`: the screenshot's file name; None: the message is whole."""
    screenshot_at: int | None = None
    """Offset in the message at which the screenshot's bytes belong."""


def screenshot_name(screenshot: Screenshot) -> str:
    return f"{hashlib.sha256(screenshot.data).hexdigest()}.{_SUFFIXES.get(screenshot.media_type, 'bin')}"


def screenshot_path(name: str) -> str:
    """Path below the folder of screenshots."""
    return f"{name[:2]}/{name}"


def cut(record: StoredRecord) -> tuple[CutRecord, Screenshot | None]:
    """Takes the screenshot out of an observation, or the traffic out of its record; anything else comes back whole."""
    digest = hashlib.sha256(record.data).hexdigest()
    screenshot = _screenshot(record)
    at = record.data.find(screenshot.data) if screenshot is not None else -1
    if screenshot is None or at < 0:
        return CutRecord(record.subject_suffix, record.time_s, record.data, digest), None
    rest = record.data[:at] + record.data[at + len(screenshot.data) :]
    return CutRecord(record.subject_suffix, record.time_s, rest, digest, screenshot_name(screenshot), at), screenshot


def _screenshot(record: StoredRecord) -> Screenshot | None:
    try:
        message = decode(record.data)
    except MessageCorrupt:
        return None
    match message:
        case Observation() if message.screenshot.data:
            return message.screenshot
        case NetworkRecord():
            return Screenshot(data=message.har, media_type=_HAR, width=0, height=0)
        case _:
            return None


def join(record: CutRecord, screenshot: bytes) -> StoredRecord:
    """Puts the screenshot back.

    Raises:
        ArchiveDamaged: the message is not the one that was stored.
    """
    data = record.data
    if record.screenshot_at is not None:
        data = data[: record.screenshot_at] + screenshot + data[record.screenshot_at :]
    if hashlib.sha256(data).hexdigest() != record.sha256:
        raise ArchiveDamaged(f"record {record.suffix} does not match its hash")
    return StoredRecord(record.suffix, record.time_s, data)


@dataclass
class ScreenshotStore:
    """The screenshot files of one archive or export."""

    folder: Path
    num_bytes: int = 0
    """Written so far."""
    _unforced: set[Path] = field(default_factory=set)

    def put(self, screenshot: Screenshot) -> str:
        """Stores a screenshot unless it is there; returns its name. Outlasts the process, and after `sync` the machine."""
        name = screenshot_name(screenshot)
        path = self.folder / screenshot_path(name)
        if not _holds(path, screenshot.data):
            make_folder(path.parent)
            write_whole(path, screenshot.data, force=False)
            self.num_bytes += len(screenshot.data)
        # One that is there may be a killed writer's, which never came to force it.
        self._unforced |= {path, path.parent}
        return name

    def sync(self) -> None:
        """Forces everything that was put to disk."""
        sync_all(sorted(self._unforced))
        self._unforced.clear()

    def read(self, name: str) -> bytes:
        """Raises `ArchiveDamaged` when the file is missing or is not what its name says."""
        path = self.folder / screenshot_path(name)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ArchiveDamaged(f"screenshot {path} cannot be read ({error.strerror})") from error
        if hashlib.sha256(data).hexdigest() != name.partition(".")[0]:
            raise ArchiveDamaged(f"screenshot {path} does not match its hash")
        return data


def _holds(path: Path, data: bytes) -> bool:
    """Compares contents: a damaged file is written again."""
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False
