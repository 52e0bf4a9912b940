"""Whoever loads onto a GPU does so alone: what a trainer takes of its memory while vLLM starts there, vLLM would count as its
own, and have too little left.

There is a lock for each GPU, in a folder of this user's own on this machine; a process that ends lets go of it, however it
does. One that loads onto several has all of them or none, so nobody waits for somebody who waits. Without a GPU there is none.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import structlog
from anyio import NoEventLoopError, from_thread

from ops.roles import nvml
from schemas.file_lock import NoFileLocks, try_lock

_LOOK_S = 0.5
_LONGEST_S = 1800.0
"""More than a model takes to load. Who has waited so long goes on as if there were no lock."""
_log = structlog.get_logger()


def alone_on_own(gpus: slice) -> Callable[[], AbstractContextManager[None]]:
    """`alone_on`, for those of the GPUs that this process may use."""
    return partial(alone_on, nvml.names(nvml.loaded(), nvml.visible_here())[gpus])


@contextmanager
def alone_on(gpus: Sequence[str]) -> Iterator[None]:
    """While it is open, no other process of this user's on this machine has one of these GPUs so. Blocks until then, for a
    thread of its own: where that is one of anyio's, cancelling ends it.

    Where the locks cannot be had it goes on without.

    Args:
        gpus: by their names, as of `nvml.names`.
    """
    with ExitStack() as held:
        if gpus:
            try:
                held.enter_context(_awaited(gpus))
            except (OSError, NoFileLocks) as error:
                _log.warning("gpu_not_locked", gpus=gpus, reason=str(error))
        yield


def _awaited(gpus: Sequence[str]) -> ExitStack:
    """The locks, or none after a long time; to be closed."""
    folder, began, said = _own_folder(), time.monotonic(), False
    while (locks := _taken(folder, gpus)) is None:
        if not said:
            _log.info("gpu_awaited", gpus=gpus, reason="another process loads onto it")
            said = True
        if time.monotonic() - began > _LONGEST_S:
            _log.warning("gpu_not_locked", gpus=gpus, reason=f"another process has loaded onto it for {_LONGEST_S:g} s")
            return ExitStack()
        _pause()
    return locks


def _taken(folder: Path, gpus: Sequence[str]) -> ExitStack | None:
    with ExitStack() as locks:
        for gpu in gpus:
            file = os.open(folder / f"{gpu}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            locks.callback(os.close, file)
            if not try_lock(file, folder):
                return None
            # Closing alone would leave it to a process that was forked meanwhile.
            locks.callback(fcntl.flock, file, fcntl.LOCK_UN)
        return locks.pop_all()


def _own_folder() -> Path:
    """Made by this user alone, whatever others put there. Raises `OSError`."""
    folder = Path(tempfile.gettempdir()) / f"millrace-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat(follow_symlinks=False).st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else: remove it")
    return folder


def _pause() -> None:
    with suppress(NoEventLoopError):
        from_thread.check_cancelled()
    time.sleep(_LOOK_S)
