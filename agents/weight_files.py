"""Files of weights on this machine: where they were announced to be, and whether they are what was announced."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from schemas.errors import CheckpointCorrupt, PolicyError
from schemas.messages import Checkpoint


def announced_folder(checkpoint: Checkpoint) -> Path | None:
    """The folder that a `file://` URI names; None for any other URI, and for what is none."""
    try:
        place = urlsplit(checkpoint.uri)
    except ValueError:
        return None
    return Path(url2pathname(place.path)) if place.scheme == "file" and place.netloc in ("", "localhost") else None


def verify_folder(folder: Path, checkpoint: Checkpoint) -> Path:
    """Compares every file that a policy loads with its hash; returns the folder.

    Raises:
        CheckpointCorrupt: a file is missing or differs.
    """
    if not checkpoint.policy_files:
        raise CheckpointCorrupt(f"{checkpoint.uri} was announced without files")
    for file in checkpoint.policy_files:
        path = inside(folder, file.path)
        if not _has_size(path, file.num_bytes) or file_digest(path) != file.sha256:
            raise CheckpointCorrupt(f"{path} does not match its hash")
    return folder


def _has_size(path: Path, num_bytes: int) -> bool:
    """Whether this is a file of so many bytes: a device, of which reading never ends, is none. True where nobody can say."""
    try:
        found = path.stat()
    except OSError:
        return True  # reading it says why it cannot be read
    return stat.S_ISREG(found.st_mode) and found.st_size == num_bytes


def inside(folder: Path, name: str) -> Path:
    """The file of that name, behind the link that a cache may have in its place; raises `CheckpointCorrupt` where the name
    leads out of the folder, or no file can have it."""
    if not Path(os.path.normpath(folder / name)).is_relative_to(os.path.normpath(folder)):
        raise CheckpointCorrupt(f"{name} lies outside {folder}")
    try:
        return (folder / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise CheckpointCorrupt(f"{name!r} names no file: {error}") from error


def file_digest(path: Path) -> str:
    """SHA-256 in hexadecimal. Raises `CheckpointCorrupt` where the file cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointCorrupt(f"{path} cannot be read: {error.strerror}") from error


@contextmanager
def disk_errors_named(folder: Path) -> Iterator[None]:
    """Raises `PolicyError` where fetched weights cannot be written."""
    try:
        yield
    except OSError as error:
        raise PolicyError(f"weights cannot be written to {folder} ({error.strerror}): free some space there") from error
