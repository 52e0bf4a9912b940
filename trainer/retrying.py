"""Waiting out a bus that is away: the feeder and the trainer have nothing else to do, and lose nothing by it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from bus.retry import SERVER_AWAITED
from bus.trying import outlast
from schemas.errors import BusError, BusUnavailable, StreamFull

_log = structlog.get_logger()
T = TypeVar("T")


async def until_available(operation: Callable[[], Awaitable[T]], *, outlasts_full: bool = True) -> T:
    """Repeats an idempotent bus operation until the bus answers; other errors go on.

    `outlasts_full`: also until a full stream has room.
    """
    outlasted: tuple[type[BusError], ...] = (BusUnavailable, StreamFull) if outlasts_full else (BusUnavailable,)
    return await outlast(operation, outlasted, SERVER_AWAITED, failed=_say)


def _say(error: BusError) -> None:
    _log.warning("bus_awaited", reason=str(error))
