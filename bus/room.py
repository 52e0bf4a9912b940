"""Waits for room: a full stream makes its writers wait and say so, in the log and in the worker's heartbeat (`bus.presence`).
Nothing is dropped, and nothing fails over it.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

import anyio
import structlog

from bus.codec import encode
from bus.ports import Bus, Expect
from schemas.errors import StreamFull
from schemas.messages import AnyMessage

_log = structlog.get_logger()
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
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
    try:
        return await bus.append_bytes(stream, subject, data, expect=expect)
    except StreamFull as error:
        _log.warning("stream_full_waiting", stream=stream, subject=subject, reason=str(error))
    began, pause_s = anyio.current_time(), _FIRST_PAUSE_S
    with _waiting(stream):
        while True:
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            with suppress(StreamFull):
                seq = await bus.append_bytes(stream, subject, data, expect=expect)
                break
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
