"""An OpenAI-compatible endpoint on loopback whose answers a test scripts (`endpoint_replies` holds the usual ones).

    async with scripted_endpoint(lambda asked: verdict(passed=True)) as endpoint:
        OpenAIConfig(base_url=endpoint.base_url)

It runs in the test's own loop: a test that waits for a child waits with `anyio.run_process` and the like, never blocking.
Invariant: every request is recorded when it has arrived, also those whose client dies.
"""

import asyncio
import inspect
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

import anyio

from tests.support.judging.endpoint_replies import Broken, Reply, Said, Sent
from tests.support.judging.endpoint_requests import Asked, PrefixCache, Usage, num_tokens, read_request

Script = Callable[[Asked], Reply | Awaitable[Reply]]


@dataclass(slots=True)
class Recorded:
    """One request, as it is counted; texts and screenshots are gone."""

    time_s: float
    """Of `time.monotonic()`, when it had arrived."""
    model: str
    key: str
    path: str
    form: str
    """The response format that was asked for: `json_schema`, `json_object`, or empty."""
    digest: str
    """Of model and messages: the same for a question that is asked again."""
    num_screenshots: int
    usage: Usage
    outcome: str = "under way"
    """`answered`, a status as in `429`, `hang`, `reset`, or `gone` when the client did not wait for the reply."""


@dataclass
class ScriptedEndpoint:
    base_url: str = ""
    requests: list[Recorded] = field(default_factory=list)
    num_under_way: int = 0
    most_under_way: int = 0
    _awaited: list[tuple[int, anyio.Event]] = field(default_factory=list)

    @property
    def outcomes(self) -> list[str]:
        return [request.outcome for request in self.requests]

    async def arrived(self, num_requests: int) -> None:
        """Returns when so many requests have come in all."""
        if len(self.requests) < num_requests:
            event = anyio.Event()
            self._awaited.append((num_requests, event))
            await event.wait()

    def record(self, request: Recorded) -> None:
        self.requests.append(request)
        for num_requests, event in self._awaited:
            if len(self.requests) >= num_requests:
                event.set()


@asynccontextmanager
async def scripted_endpoint(script: Script, *, port: int = 0) -> AsyncIterator[ScriptedEndpoint]:
    """Serves until left; whoever still waits for a reply is cut off.

    Raises:
        ExceptionGroup: in the end, of what `script` raised; those requests were answered with 500.
    """
    server = _Server(script)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", port, backlog=1024)
    server.endpoint.base_url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server.endpoint
    finally:
        listener.close()
        with anyio.move_on_after(10, shield=True):
            await server.close()
            await listener.wait_closed()
    if server.broken:
        raise ExceptionGroup("the script of the endpoint failed", server.broken)


class _Server:
    def __init__(self, script: Script) -> None:
        self.endpoint = ScriptedEndpoint()
        self.broken: list[Exception] = []
        self._script = script
        self._cache = PrefixCache()
        self._connections: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._connections.discard(connection)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its reply; False when the connection is over."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        payload = await reader.readexactly(int(headers.get("content-length", "0")))
        if method != "POST":
            writer.write(Sent(404, b"{}").encoded())
            return True
        endpoint = self.endpoint
        asked = read_request(len(endpoint.requests), path, headers, payload)
        request = Recorded(
            time_s=time.monotonic(),
            model=asked.model,
            key=asked.key,
            path=path,
            form=asked.form,
            digest=asked.digest,
            num_screenshots=len(asked.screenshots),
            usage=self._cache.usage(asked),
        )
        endpoint.num_under_way += 1
        endpoint.most_under_way = max(endpoint.most_under_way, endpoint.num_under_way)
        endpoint.record(request)
        try:
            return await self._send(await self._reply(asked), request, reader, writer)
        finally:
            endpoint.num_under_way -= 1

    async def _reply(self, asked: Asked) -> Reply:
        try:
            reply = self._script(asked)
            return await reply if inspect.isawaitable(reply) else reply
        except Exception as error:  # noqa: BLE001 - the test's own code: raised when the endpoint ends
            self.broken.append(error)
            return Sent(500, b"{}")

    async def _send(self, reply: Reply, request: Recorded, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if isinstance(reply, str):
            request.outcome = reply
            await _break(reply, reader, writer)
            return False
        if isinstance(reply, Said):
            request.usage = replace(request.usage, completion_tokens=num_tokens(reply.text or ""))
            reply = reply.sent(request.model, request.usage)
        # Before it is sent: who reads the answer finds it recorded.
        request.outcome = "answered" if reply.status == 200 else str(reply.status)
        try:
            writer.write(reply.encoded())
            await writer.drain()
        except ConnectionError:
            request.outcome = "gone"
            return False
        return True


async def _break(how: Broken, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if how == "hang":
        await reader.read(1)
        return
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
