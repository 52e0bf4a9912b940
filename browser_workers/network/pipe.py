"""Two connections joined: what comes in at one end goes out at the other.

Invariant: an end that cannot send stops the other from receiving, so that at most a buffer's worth is held; when one end is
gone, the other sends what it still has and ends too.
"""

import asyncio
import time
from typing import cast

_BUFFER = 2**18
"""Bytes held for an end that does not take them, before the other is stopped."""


class End(asyncio.Protocol):
    transport: asyncio.Transport
    other: "End | None" = None

    def __init__(self) -> None:
        self.used_at = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=_BUFFER)

    def data_received(self, data: bytes) -> None:
        self.used_at = time.monotonic()
        if self.other is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and not self.other.transport.is_closing():
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


def join(one: End, another: End) -> None:
    one.other, another.other = another, one
