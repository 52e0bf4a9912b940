"""Proxies on loopback that work or fail as told: CONNECT of HTTP, and SOCKS 5. Whatever is asked for is one port here."""

import base64
import ipaddress
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

import anyio
import anyio.abc
from anyio.abc import SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

Kind = Literal["http", "socks5"]
Manner = Literal["works", "cannot", "silent", "closes", "resets", "talks", "garbles", "drops ipv6"]
"""`cannot`: the site cannot be reached; `talks`: more than its answer; `garbles`: where it leads from is no text (SOCKS)."""
_GRANTED, _UNREACHABLE = 0, 4
_HEAD = 2**12
_AT_ONCE = struct.pack("ii", 1, 0)


class ScriptedProxy:
    def __init__(self, kind: Kind, leads_to: int, *, user: str = "", password: str = "", manner: Manner = "works") -> None:
        self.port = 0
        self.asked: list[tuple[str, int]] = []
        """Where it was asked to lead, by whoever had the password."""
        self.num_strangers = 0
        self.manner = manner
        self._kind, self._leads_to = kind, leads_to
        self._credentials = (user, password)

    @property
    def url(self) -> str:
        """Without a password."""
        user = f"{self._credentials[0]}@" if self._credentials[0] else ""
        return f"{self._kind}://{user}127.0.0.1:{self.port}"

    def url_with(self, password: str) -> str:
        return self.url.replace("@", f":{password}@")

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.IncompleteRead, anyio.ClosedResourceError):
                if self.manner == "closes":
                    return
                if self.manner == "resets":
                    await stream.receive()
                    stream.extra(SocketAttribute.raw_socket).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                    return
                if self.manner == "silent":
                    await anyio.sleep_forever()
                heard = BufferedByteReceiveStream(stream)
                if await (self._http(stream, heard) if self._kind == "http" else self._socks(stream, heard)):
                    await self._lead(stream, heard)

    async def _http(self, stream: anyio.abc.SocketStream, heard: BufferedByteReceiveStream) -> bool:
        head = (await heard.receive_until(b"\r\n\r\n", _HEAD)).decode()
        first, *lines = head.split("\r\n")
        said = dict(line.split(": ", 1) for line in lines)
        if self._credentials[0] and said.get("Proxy-Authorization") != _basic(*self._credentials):
            self.num_strangers += 1
            await stream.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return False
        host, _, port = first.split(" ")[1].rpartition(":")
        self.asked.append((host.strip("[]"), int(port)))
        await self._drop(host)
        if self.manner == "cannot":
            await stream.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return False
        # In two pieces, as a network may deliver it.
        await stream.send(b"HTTP/1.1 200 Connection established\r\n")
        await anyio.wait_all_tasks_blocked()
        await stream.send(b"Via: 1.1 here\r\n\r\n" + (b"and more" if self.manner == "talks" else b""))
        return True

    async def _socks(self, stream: anyio.abc.SocketStream, heard: BufferedByteReceiveStream) -> bool:
        """RFC 1928, RFC 1929."""
        _, num_methods = await heard.receive_exactly(2)
        methods = await heard.receive_exactly(num_methods)
        if self._credentials[0]:
            if 2 not in methods:
                await stream.send(b"\x05\xff")
                return False
            await stream.send(b"\x05\x02")
            _, length = await heard.receive_exactly(2)
            user = await heard.receive_exactly(length)
            (length,) = await heard.receive_exactly(1)
            if (user.decode(), (await heard.receive_exactly(length)).decode()) != self._credentials:
                self.num_strangers += 1
                await stream.send(b"\x01\x01")
                return False
            await stream.send(b"\x01\x00")
        else:
            await stream.send(b"\x05\x00")
        _, _, _, kind = await heard.receive_exactly(4)
        if kind == 3:
            (length,) = await heard.receive_exactly(1)
            host = (await heard.receive_exactly(length)).decode()
        else:
            host = str(ipaddress.ip_address(await heard.receive_exactly(4 if kind == 1 else 16)))
        self.asked.append((host, int.from_bytes(await heard.receive_exactly(2))))
        await self._drop(host)
        if self.manner == "garbles":
            await stream.send(bytes((5, _GRANTED, 0, 3, 1, 0xFF)) + bytes(2))
            return False
        answer = _UNREACHABLE if self.manner == "cannot" else _GRANTED
        await stream.send(bytes((5, answer, 0, 1)) + bytes(6))
        return answer == _GRANTED

    async def _drop(self, host: str) -> None:
        if self.manner == "drops ipv6" and ":" in host:
            await anyio.sleep_forever()

    async def _lead(self, stream: anyio.abc.SocketStream, heard: BufferedByteReceiveStream) -> None:
        async with await anyio.connect_tcp("127.0.0.1", self._leads_to) as site, anyio.create_task_group() as group:
            group.start_soon(_pass_on, heard, site, group.cancel_scope)
            group.start_soon(_pass_on, site, stream, group.cancel_scope)


async def _pass_on(source: anyio.abc.ByteReceiveStream, sink: anyio.abc.ByteSendStream, until: anyio.CancelScope) -> None:
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for data in source:
            await sink.send(data)
    until.cancel()


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@asynccontextmanager
async def scripted_proxy(
    kind: Kind, leads_to: int, *, user: str = "", password: str = "", manner: Manner = "works"
) -> AsyncIterator[ScriptedProxy]:
    proxy = ScriptedProxy(kind, leads_to, user=user, password=password, manner=manner)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        proxy.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        group.start_soon(listener.serve, proxy.serve)
        yield proxy
        group.cancel_scope.cancel()
