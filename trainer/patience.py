"""Waiting out a bus that is away: the feeder and the trainer have nothing else to do, and lose nothing by it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import structlog

from schemas.errors import BusUnavailable, StreamFull

_DELAYS_S = (0.2, 0.5, 1.0, 2.0)
_log = structlog.get_logger()
T = TypeVar("T")


async def patiently(operation: Callable[[], Awaitable[T]], *, outlasts_full: bool = True) -> T:
    """Repeats an idempotent bus operation until the bus answers; other errors go on.

    `outlasts_full`: also until a full stream has room.
    """
    attempt = 0
    outlasted = (BusUnavailable, StreamFull) if outlasts_full else (BusUnavailable,)
    while True:
        try:
            return await operation()
        except outlasted as error:
            delay_s = _DELAYS_S[min(attempt, len(_DELAYS_S) - 1)]
            _log.warning("bus_awaited", reason=str(error), delay_s=delay_s)
        attempt += 1
        await anyio.sleep(delay_s)
