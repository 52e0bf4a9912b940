"""Follows a stream for ever, through every outage of the server: the one loop of all who watch a run."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeVar

import structlog

from bus.backlog import backlog
from bus.ports import Bus, Record
from bus.retry import SERVER_AWAITED
from bus.trying import outlast
from schemas.errors import BusError, BusUnavailable

_log = structlog.get_logger()
T = TypeVar("T")


async def follow(
    bus: Bus,
    stream: str,
    subject_filter: str,
    take: Callable[[Record], None],
    *,
    after_seq: int = 0,
    read_up: Callable[[], None] = lambda: None,
    outlasted: tuple[type[BusError], ...] = (BusUnavailable,),
) -> None:
    """Gives `take` every record behind a sequence, in order, each once; never returns.

    Args:
        read_up: called once, when all that was stored has been taken.
        outlasted: what is waited out.
    """

    async def patiently(operation: Callable[[], Awaitable[T]]) -> T:
        return await outlast(operation, outlasted, SERVER_AWAITED, failed=partial(_say, stream))

    async def take_stored() -> None:
        nonlocal after_seq
        async for record in backlog(bus, stream, subject_filter, after_seq=after_seq):
            after_seq = record.seq
            take(record)

    await patiently(take_stored)
    read_up()
    async with AsyncExitStack() as stack:
        opened = partial(bus.tail, stream, subject_filter, after_seq=after_seq)
        records = await patiently(lambda: stack.enter_async_context(opened()))
        while True:
            take(await patiently(records.__anext__))


def _say(stream: str, error: BusError) -> None:
    _log.warning("stream_awaited", stream=stream, reason=str(error))
