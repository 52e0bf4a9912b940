"""Replies of bounded size: what an endpoint, or a proxy in its place, goes on sending is not read into memory without end."""

from collections.abc import AsyncIterator

import httpx2

MAX_REPLY_BYTES = 16 * 2**20
"""A completion with its thoughts is far below it."""


class ReplyTooLarge(httpx2.TransportError):
    """The rest of the reply is left unread."""


async def bound(response: httpx2.Response) -> None:
    """Hook for responses of which nothing was read yet: reading raises `ReplyTooLarge` beyond the bound."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        num_bytes = 0
        async for part in self._stream:
            num_bytes += len(part)
            if num_bytes > MAX_REPLY_BYTES:
                raise ReplyTooLarge(f"more than {MAX_REPLY_BYTES:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
