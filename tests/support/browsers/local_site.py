"""A small web server on loopback for tests: pages by path, what was asked of it, and a WebSocket that says hello."""

import base64
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import anyio.abc

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Reply:
    body: bytes = b""
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        headers = {"content-type": "text/html", "content-length": str(len(self.body)), **self.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status}\r\n{lines}\r\n".encode() + self.body


class LocalSite:
    def __init__(self, pages: Mapping[str, Reply]) -> None:
        self.port = 0
        self.asked: list[Asked] = []
        self._pages = pages

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def num_asked(self, path: str) -> int:
        return sum(asked.path == path for asked in self.asked)

    def reply(self, asked: Asked) -> Reply:
        if asked.path == "/auth" and "authorization" not in asked.headers:
            return Reply(b"who?", "401 Unauthorized", {"www-authenticate": 'Basic realm="x"'})
        return self._pages.get(asked.path, Reply(b"not found", "404 Not Found"))

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            heard = b""
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    while b"\r\n\r\n" not in heard:
                        heard += await stream.receive()
                    head, _, heard = heard.partition(b"\r\n\r\n")
                    first, *lines = head.decode("latin-1").split("\r\n")
                    method, path, _ = first.split(" ")
                    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                    length = int(headers.get("content-length", "0"))
                    while len(heard) < length:
                        heard += await stream.receive()
                    heard = heard[length:]
                    asked = Asked(method, path, headers)
                    self.asked.append(asked)
                    if key := headers.get("sec-websocket-key"):
                        await stream.send(_greeting(key))
                    else:
                        await stream.send(self.reply(asked).encoded())


def _greeting(key: str) -> bytes:
    accept = base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        + accept
        + b"\r\n\r\n\x81\x05hello"
    )


@asynccontextmanager
async def local_site(pages: Mapping[str, Reply]) -> AsyncIterator[LocalSite]:
    site = LocalSite(pages)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        site.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        group.start_soon(listener.serve, site.serve)
        yield site
        group.cancel_scope.cancel()
