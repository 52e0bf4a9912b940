"""Weights that stay whole while they are read, whoever deletes their folder meanwhile: the trainer, or another worker.

Files are held by hard links, which outlast the names that they had; where the folder is on another disk, by copies.
"""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio.to_thread

from agents.weight_files import disk_errors_named, inside
from schemas.errors import CheckpointCorrupt
from schemas.messages import Checkpoint, FileHash

_PREFIX = ".held-"
_ABANDONED_S = 3600.0
"""What is older than a folder of now was left by a process that was killed: no version takes so long to load."""


@asynccontextmanager
async def pinned(folder: Path, checkpoint: Checkpoint, root: Path) -> AsyncIterator[Path]:
    """A folder under `root` with the same name and the files that a policy loads; it is there while the context is open.

    Raises:
        CheckpointCorrupt: a file is gone already.
        PolicyError: `root` cannot be written to.
    """
    held = await anyio.to_thread.run_sync(_hold, folder, checkpoint, root)
    try:
        yield held
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_release, held.parent)


def _hold(folder: Path, checkpoint: Checkpoint, root: Path) -> Path:
    with disk_errors_named(root):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        _sweep(root, own.stat().st_mtime)
        place = own / folder.name
        try:
            place.mkdir()
            for file in checkpoint.policy_files:
                _take(inside(folder, file.path), inside(place, file.path), file)
        except BaseException:
            _release(place.parent)
            raise
    return place


def _take(source: Path, target: Path, file: FileHash) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        try:
            os.link(source, target)
        except FileNotFoundError:
            raise
        except OSError:
            # Another disk, one without links, or a file that belongs to somebody else.
            shutil.copyfile(source, target)
    except FileNotFoundError as error:
        raise CheckpointCorrupt(f"{source} was deleted before it could be loaded") from error
    if target.stat().st_size != file.num_bytes:
        raise CheckpointCorrupt(f"{source} has not the size that was announced")


def _release(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)


def _sweep(root: Path, now: float) -> None:
    """`now`: by the disk's clock, as the folders' own times are; a process's own clock may be wrong."""
    for left in root.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):
            if now - left.stat().st_mtime > _ABANDONED_S:
                _release(left)
