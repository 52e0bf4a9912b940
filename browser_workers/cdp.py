"""The Chrome DevTools Protocol over Chromium's own pipe: calls with deadlines, events as plain callbacks.

No driver process stands between the worker and Chromium, and nothing listens on a port. When the pipe ends, every call under
way fails at once with `BrowserLost`; that is how a killed browser is noticed.
"""

import asyncio
import os
from collections.abc import Callable
from typing import cast

import msgspec

from schemas.errors import BrowserError, BrowserLost, PageFailed

Json = dict[str, object]
Listener = Callable[[str, Json], None]
"""Called with an event's method and parameters; must not block and must not raise."""
_BROWSER = ""


class CallRefused(BrowserError):
    """Chromium answered a call with an error; the caller knows what that means."""


class _Incoming(msgspec.Struct):
    id: int = 0
    method: str = ""
    params: Json = {}
    result: Json = {}
    error: Json | None = None
    sessionId: str = _BROWSER  # noqa: N815 - the protocol's own name


_decoder = msgspec.json.Decoder(_Incoming)
_encoder = msgspec.json.Encoder()


class _Pipe(asyncio.Protocol):
    """Cuts the byte stream at its zero bytes."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._chunks: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\0")
        for end in whole:
            self._chunks.append(end)
            self._connection.received(b"".join(self._chunks))
            self._chunks.clear()
        if rest:
            self._chunks.append(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.lost()


class Connection:
    """One Chromium. Create it with `connect`; `close` lets go of the pipe, on which Chromium ends by itself."""

    def __init__(self) -> None:
        self._last_id = 0
        self._calls: dict[int, tuple[str, asyncio.Future[Json]]] = {}
        self._listeners: dict[str, Listener] = {}
        self._writer: asyncio.WriteTransport | None = None
        self._reader: asyncio.ReadTransport | None = None
        self.closed = asyncio.Event()

    @classmethod
    async def connect(cls, read_fd: int, write_fd: int) -> "Connection":
        """Takes over both descriptors."""
        connection, loop = cls(), asyncio.get_running_loop()
        reader, _ = await loop.connect_read_pipe(lambda: _Pipe(connection), os.fdopen(read_fd, "rb", 0))
        writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(write_fd, "wb", 0))
        connection._reader, connection._writer = reader, writer
        return connection

    async def close(self) -> None:
        for transport in (self._writer, self._reader):
            if transport is not None:
                transport.close()
        self.lost()

    def listen(self, listener: Listener, session: str = _BROWSER) -> None:
        self._listeners[session] = listener

    def forget(self, session: str) -> None:
        """Nothing is heard of the session any more, and calls to it under way fail."""
        self._listeners.pop(session, None)
        for call_id, (owner, _) in list(self._calls.items()):
            if owner == session:
                self._fail(call_id, PageFailed("the page is gone"))

    def post(self, method: str, params: Json | None = None, session: str = _BROWSER) -> asyncio.Future[Json]:
        """Sends a call without waiting. The future may be dropped: its failure is then nobody's concern."""
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieve)
        if self.closed.is_set() or self._writer is None:
            future.set_exception(BrowserLost("the browser is gone"))
            return future
        self._last_id += 1
        message: Json = {"id": self._last_id, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self._calls[self._last_id] = (session, future)
        self._writer.write(_encoder.encode(message) + b"\0")
        return future

    async def call(self, method: str, params: Json | None = None, session: str = _BROWSER, *, timeout_s: float) -> Json:
        """Raises `CallRefused`, `BrowserLost`, or `PageFailed` when no answer comes within `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self.post(method, params, session)
        except TimeoutError as error:
            raise PageFailed(f"{method} did not return within {timeout_s:g} s") from error

    def received(self, data: bytes) -> None:
        message = _decoder.decode(data)
        if not message.id:
            listener = self._listeners.get(message.sessionId)
            if listener is not None:
                listener(message.method, message.params)
        elif message.error is not None:
            self._fail(message.id, CallRefused(str(message.error.get("message"))))
        elif (call := self._calls.pop(message.id, None)) is not None and not call[1].done():
            call[1].set_result(message.result)

    def lost(self) -> None:
        self.closed.set()
        for call_id in list(self._calls):
            self._fail(call_id, BrowserLost("the browser ended while it was in use"))

    def _fail(self, call_id: int, error: BrowserError) -> None:
        call = self._calls.pop(call_id, None)
        if call is not None and not call[1].done():
            call[1].set_exception(error)


def _retrieve(future: asyncio.Future[Json]) -> None:
    if not future.cancelled():
        future.exception()


def text(params: Json, *path: str) -> str:
    """The string at a path of an answer or event; empty when there is none."""
    value: object = params
    for key in path:
        value = cast(Json, value).get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
