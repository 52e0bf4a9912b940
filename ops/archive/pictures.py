"""Pictures as files of their own, named by their content: a picture that many records show is stored once.

The picture's bytes are cut out of the encoded message, never re-encoded, so that what is left, with the picture put back where
it was, gives the identical message. A message that this version cannot read is not cut.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from bus.codec import decode
from ops.archive.durable import make_folder, sync_all, write_whole
from ops.archive.episodes import StoredRecord
from schemas.errors import ArchiveDamaged, MessageCorrupt
from schemas.messages import Observation, Picture

_SUFFIXES = {"image/jpeg": "jpg", "image/png": "png"}


@dataclass(frozen=True, slots=True)
class CutRecord:
    """A chain record without its picture."""

    suffix: str
    time_s: float
    data: bytes
    sha256: str
    """Of the whole message, picture included."""
    picture: str | None = None
    """`<sha256>.<jpg|png>`: the picture's file name; None: the message is whole."""
    picture_at: int | None = None
    """Offset in the message at which the picture's bytes belong."""


def picture_name(picture: Picture) -> str:
    return f"{hashlib.sha256(picture.data).hexdigest()}.{_SUFFIXES.get(picture.media_type, 'bin')}"


def picture_path(name: str) -> str:
    """Path below the folder of pictures."""
    return f"{name[:2]}/{name}"


def cut(record: StoredRecord) -> tuple[CutRecord, Picture | None]:
    """Takes the picture out of an observation; anything else comes back whole."""
    digest = hashlib.sha256(record.data).hexdigest()
    picture = _picture(record)
    at = record.data.find(picture.data) if picture is not None else -1
    if picture is None or at < 0:
        return CutRecord(record.subject_suffix, record.time_s, record.data, digest), None
    rest = record.data[:at] + record.data[at + len(picture.data) :]
    return CutRecord(record.subject_suffix, record.time_s, rest, digest, picture_name(picture), at), picture


def _picture(record: StoredRecord) -> Picture | None:
    try:
        message = decode(record.data)
    except MessageCorrupt:
        return None
    return message.picture if isinstance(message, Observation) and message.picture.data else None


def join(record: CutRecord, picture: bytes) -> StoredRecord:
    """Puts the picture back.

    Raises:
        ArchiveDamaged: the message is not the one that was stored.
    """
    data = record.data
    if record.picture_at is not None:
        data = data[: record.picture_at] + picture + data[record.picture_at :]
    if hashlib.sha256(data).hexdigest() != record.sha256:
        raise ArchiveDamaged(f"record {record.suffix} does not match its hash")
    return StoredRecord(record.suffix, record.time_s, data)


@dataclass
class PictureStore:
    """The picture files of one archive or export."""

    folder: Path
    num_bytes: int = 0
    """Written so far."""
    _unforced: set[Path] = field(default_factory=set)

    def put(self, picture: Picture) -> str:
        """Stores a picture unless it is there; returns its name. Outlasts the process, and after `sync` the machine."""
        name = picture_name(picture)
        path = self.folder / picture_path(name)
        if not _holds(path, picture.data):
            make_folder(path.parent)
            write_whole(path, picture.data, force=False)
            self.num_bytes += len(picture.data)
        # One that is there may be a killed writer's, which never came to force it.
        self._unforced |= {path, path.parent}
        return name

    def sync(self) -> None:
        """Forces everything that was put to disk."""
        sync_all(sorted(self._unforced))
        self._unforced.clear()

    def read(self, name: str) -> bytes:
        """Raises `ArchiveDamaged` when the file is missing or is not what its name says."""
        path = self.folder / picture_path(name)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ArchiveDamaged(f"picture {path} cannot be read ({error.strerror})") from error
        if hashlib.sha256(data).hexdigest() != name.partition(".")[0]:
            raise ArchiveDamaged(f"picture {path} does not match its hash")
        return data


def _holds(path: Path, data: bytes) -> bool:
    """Compares contents: a damaged file is written again."""
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False
