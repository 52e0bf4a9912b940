"""Waits for room: a full stream makes its writers wait and say so. Nothing is dropped, and nothing fails over it."""

import anyio
import structlog

from bus.codec import encode
from bus.ports import Bus, Expect
from schemas.errors import StreamFull
from schemas.messages import AnyMessage

_log = structlog.get_logger()
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0


async def append_when_room(bus: Bus, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
    """`Bus.append` that outlasts a full stream.

    Meanwhile the writer's own delivery stays in progress (`bus.settlement`), and `expect` still keeps it from overwriting
    whoever has taken over.
    """
    return await append_bytes_when_room(bus, stream, subject, encode(message), expect=expect)


async def append_bytes_when_room(bus: Bus, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
    """`Bus.append_bytes` that outlasts a full stream."""
    pause_s = _FIRST_PAUSE_S
    began = anyio.current_time()
    while True:
        try:
            seq = await bus.append_bytes(stream, subject, data, expect=expect)
        except StreamFull as error:
            if pause_s == _FIRST_PAUSE_S:
                _log.warning("stream_full_waiting", stream=stream, subject=subject, reason=str(error))
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            continue
        if pause_s > _FIRST_PAUSE_S:
            _log.info("stream_has_room", stream=stream, subject=subject, waited_s=round(anyio.current_time() - began, 1))
        return seq
