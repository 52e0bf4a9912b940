"""One process at a time keeps the roles of a run's folder running: the kernel lets go of its lock when it ends, however."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import structlog

from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError
from schemas.file_lock import NoFileLocks, try_lock

_log = structlog.get_logger()


@contextmanager
def alone(folder: RunFolder, node: str = "") -> Iterator[None]:
    """No other process starts roles here while the context is open.

    Args:
        node: whose roles alone are meant, in a folder that several nodes share; empty: all.

    Raises:
        ConfigurationError: another process does, or the folder cannot be written.
    """
    path = folder.lock(node)
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = path.open("a+")
    except OSError as error:
        raise ConfigurationError(
            f"the run's folder {folder.path} cannot be written ({error.strerror}): choose another folder"
        ) from error
    with lock:
        try:
            if not try_lock(lock, folder.path):
                whose = f"the roles of {node}" if node else "its roles"
                raise ConfigurationError(
                    f"{folder.path} is in use: {_holder(lock)} keeps {whose} running there; let it, or end it, or choose "
                    "another folder"
                )
        except NoFileLocks as error:
            _log.warning("folder_not_locked", reason=str(error))
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        lock.flush()
        yield


def _holder(lock: TextIO) -> str:
    lock.seek(0)
    return lock.readline().strip() or "another process"
