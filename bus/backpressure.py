"""Waits for room: a full stream makes its writers wait and say so, in the log and in the worker's heartbeat (`bus.presence`).
Nothing is dropped, and nothing fails over it.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

import anyio
import structlog

from bus.codec import encode
from bus.ports import Bus, Expect
from bus.retry import ROOM_AWAITED
from bus.trying import outlast
from schemas.errors import StreamFull
from schemas.messages import AnyMessage

_log = structlog.get_logger()
_awaited: ContextVar[Counter[str] | None] = ContextVar("awaited", default=None)


@contextmanager
def counted(awaited: Counter[str]) -> Iterator[None]:
    """While open, `awaited` holds how many writers of this task and its children wait for room, by stream."""
    before = _awaited.set(awaited)
    try:
        yield
    finally:
        _awaited.reset(before)


async def append_when_room(bus: Bus, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
    """`Bus.append` that outlasts a full stream.

    Meanwhile the writer's own delivery stays in progress (`bus.settlement`), and `expect` still keeps it from overwriting
    whoever has taken over.
    """
    return await append_bytes_when_room(bus, stream, subject, encode(message), expect=expect)


async def append_bytes_when_room(bus: Bus, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
    """`Bus.append_bytes` that outlasts a full stream."""
    append = partial(bus.append_bytes, stream, subject, data, expect=expect)
    try:
        return await append()
    except StreamFull as error:
        _log.warning("stream_full_waiting", stream=stream, subject=subject, reason=str(error))
    began = anyio.current_time()
    with _waiting(stream):
        await anyio.sleep(ROOM_AWAITED.first_s)
        seq = await outlast(append, (StreamFull,), ROOM_AWAITED)
    _log.info("stream_has_room", stream=stream, subject=subject, waited_s=round(anyio.current_time() - began, 1))
    return seq


@contextmanager
def _waiting(stream: str) -> Iterator[None]:
    awaited = _awaited.get()
    if awaited is None:
        yield
        return
    awaited[stream] += 1
    try:
        yield
    finally:
        awaited[stream] -= 1
