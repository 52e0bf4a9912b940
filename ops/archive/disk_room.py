"""Waits for room on the disk: a full disk stops the archiver, and it says so; nothing is skipped over it."""

import errno
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
import structlog

T = TypeVar("T")
_log = structlog.get_logger()
_FULL = (errno.ENOSPC, errno.EDQUOT)
_PAUSE_S = 5.0


async def when_disk_has_room(work: Callable[[], T]) -> T:
    """Runs `work` in a thread, again and again while the disk is full. `work` has to be safe to repeat."""
    while True:
        try:
            return await anyio.to_thread.run_sync(work)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            _log.error("archive_disk_full", path=error.filename, reason=error.strerror)
            await anyio.sleep(_PAUSE_S)
