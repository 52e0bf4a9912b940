"""Temporary files of a process that outlive it by no more than the time until the next of its kind starts on this machine.

Invariant: a folder is locked for as long as its process lives; one that nobody has locked was left by a process that was
killed, and is removed.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

_log = structlog.get_logger()
_LOCK = "lock"
_LONGEST = 60
"""Bytes of a folder's path: a socket's may have 107, and Chromium's begins with the folder and has 46 more."""


@contextmanager
def own_temporary_files(kind: str) -> Iterator[Path]:
    """Where this process, and whatever it starts, keep temporary files while the context is open: it is their `TMPDIR`.

    For a process that does nothing else meanwhile. `kind` says which folders of others are its like. Where the path would be
    too long for sockets, all stays as it is.
    """
    root, prefix = Path(tempfile.gettempdir()), f"millrace.{kind}."
    if len(os.fsencode(root / f"{prefix}12345678")) > _LONGEST:
        yield root
        return
    folder, lock = _make(root, prefix)
    _sweep(root, prefix)
    inherited = os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = None
        del os.environ["TMPDIR"]
        if inherited is not None:
            os.environ["TMPDIR"] = inherited
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _make(root: Path, prefix: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
        # Until it is locked, another process may take it for one that was left.
        with suppress(FileNotFoundError):
            lock = _open_lock(folder)
            # On a disk that knows no locks nothing is removed either.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            if (folder / _LOCK).exists():
                return folder, lock
            os.close(lock)


def _open_lock(folder: Path) -> int:
    """Raises `OSError` for a folder that is gone, another user's or a link."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        return os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=directory)
    finally:
        os.close(directory)


def _sweep(root: Path, prefix: str) -> None:
    for left in root.glob(f"{prefix}*"):
        with suppress(OSError):
            lock = _open_lock(left)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
                _log.info("left_files_removed", folder=str(left))
            finally:
                os.close(lock)
