"""Locks between processes: the kernel lets go of them when a process ends, however it does."""

import fcntl
from pathlib import Path
from typing import TextIO

from schemas.errors import ConfigurationError


class NoFileLocks(ConfigurationError):
    """A disk that knows none, as some that machines share."""


def try_lock(file: TextIO | int, of: Path) -> bool:
    """Makes an open file this process's own until it is closed; False: it is another one's.

    Args:
        of: what is guarded by it.

    Raises:
        NoFileLocks: its disk knows no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise NoFileLocks(
            f"{of} is on a disk that knows no file locks ({error.strerror}): choose a folder on another one, such as a disk "
            "of this machine's own"
        ) from error
    return True
