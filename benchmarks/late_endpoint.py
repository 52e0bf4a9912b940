"""An endpoint that answers everything after a fixed time, with the right verdict, and takes as little processor as it can.

It reads no screenshot and no JSON: what it needs of a request stands beside the screenshots in plain text.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio

from benchmarks.judged_episodes import REASONING, verdict_word
from tests.support.judging.endpoint_replies import verdict
from tests.support.judging.endpoint_requests import Usage

_BUFFER: Final = 16 * 1024 * 1024
_LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_SCHEMA: Final = re.compile(rb'"(blocking_verdict|keypoint_verdict|criterion_verdict)"')
_DATA_URL: Final = b'{"url":"data:'
_USAGE: Final = Usage(prompt_tokens=2000, cached_tokens=1000, completion_tokens=100)
_CLOSING_S: Final = 10.0


class LateEndpoint:
    def __init__(self, latency_s: float) -> None:
        self.base_url = ""
        self.num_requests = 0
        self._latency_s = latency_s
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = _LENGTH.search(head)
                    payload = await reader.readexactly(int(length[1])) if length else b""
                    self.num_requests += 1
                    await asyncio.sleep(self._latency_s)
                    writer.write(_reply(payload))
        finally:
            self._connections.discard(connection)
            writer.close()

    async def close(self) -> None:
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)


@asynccontextmanager
async def late_endpoint(latency_s: float) -> AsyncIterator[LateEndpoint]:
    """Serves on loopback until left."""
    endpoint = LateEndpoint(latency_s)
    listener = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0, backlog=1024, limit=_BUFFER)
    endpoint.base_url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield endpoint
    finally:
        listener.close()
        with anyio.move_on_after(_CLOSING_S, shield=True):
            await endpoint.close()
            await listener.wait_closed()


def _reply(payload: bytes) -> bytes:
    schema = _SCHEMA.search(payload, payload.rfind(b'"response_format"'))
    assert schema is not None, payload[-500:]
    text = _without_screenshots(payload).decode().replace("\\n", "\n")
    said = verdict(reasoning=REASONING, verdict=verdict_word(schema[1].decode(), text))
    return said.sent("late", _USAGE).encoded()


def _without_screenshots(payload: bytes) -> bytes:
    first, *others = payload.split(_DATA_URL)
    return b"".join((first, *(other[other.find(b'"') :] for other in others)))
