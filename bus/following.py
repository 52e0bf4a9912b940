"""Follows a stream for ever, through every outage of the server: for roles, and for all who watch a run."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
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


@asynccontextmanager
async def patient_tail(
    bus: Bus,
    stream: str,
    subject_filter: str,
    *,
    after_seq: int = 0,
    outlasted: tuple[type[BusError], ...] = (BusUnavailable,),
) -> AsyncIterator[AsyncIterator[Record]]:
    """`Bus.tail` through every outage of the server. `outlasted`: what is waited out."""

    async def patiently(operation: Callable[[], Awaitable[T]]) -> T:
        return await _patiently(operation, stream, outlasted)

    async def endless() -> AsyncGenerator[Record]:
        while True:
            yield await patiently(records.__anext__)

    async with AsyncExitStack() as stack:
        opened = partial(bus.tail, stream, subject_filter, after_seq=after_seq)
        records = await patiently(lambda: stack.enter_async_context(opened()))
        yield await stack.enter_async_context(aclosing(endless()))


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

    async def take_stored() -> None:
        nonlocal after_seq
        async for record in backlog(bus, stream, subject_filter, after_seq=after_seq):
            after_seq = record.seq
            take(record)

    await _patiently(take_stored, stream, outlasted)
    read_up()
    async with patient_tail(bus, stream, subject_filter, after_seq=after_seq, outlasted=outlasted) as records:
        async for record in records:
            take(record)


async def _patiently(operation: Callable[[], Awaitable[T]], stream: str, outlasted: tuple[type[BusError], ...]) -> T:
    return await outlast(operation, outlasted, SERVER_AWAITED, failed=partial(_say, stream))


def _say(stream: str, error: BusError) -> None:
    _log.warning("stream_awaited", stream=stream, reason=str(error))
