"""A TCP proxy between one worker and its server, whose connections can be cut or made to carry nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import cast

from bus.server.ports import held_port

_LOOPBACK = "127.0.0.1"


class _Pipe(asyncio.Protocol):
    """One end of a proxied connection: what it receives goes to the other end."""

    def __init__(self, proxy: "TcpProxy", *, is_far: bool = False) -> None:
        """`is_far`: the server's end."""
        self.proxy = proxy
        self._is_far = is_far
        self.other: _Pipe | None = None
        self.transport: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an instance of it under uvloop, but the same.
        self.transport = cast(asyncio.Transport, transport)
        self.proxy.pipes.add(self)
        if self.proxy.is_silent:
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if self._is_far and self.proxy.is_deaf:
            return
        if self.other is None:
            self._early.append(data)
        else:
            self.other.send(data)

    def send(self, data: bytes) -> None:
        """What comes for a connection that is gone is lost with it: uvloop raises where asyncio warns."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def join(self, other: "_Pipe") -> None:
        self.other, other.other = other, self
        for pipe, peer in ((self, other), (other, self)):
            for data in pipe._early:
                peer.send(data)
            pipe._early.clear()
        if self.transport is None or self.transport.is_closing():
            self.connection_lost(None)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None and not self.proxy.is_silent:
            self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self.proxy.pipes.discard(self)
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class TcpProxy:
    """Listens on loopback; had from `tcp_proxy`."""

    def __init__(self, host: str, port: int, *, at: int) -> None:
        """`at`: its own port."""
        self._host = host
        self._port = port
        self.port = at
        self.is_silent = False
        self.is_deaf = False
        """Set: what the server is told reaches it, and what it answers is lost."""
        self.pipes: set[_Pipe] = set()
        self._joining: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None

    async def listen(self) -> None:
        """Accepts connections, always on the same port."""
        self._listening = await asyncio.get_running_loop().create_server(self.accept, _LOOPBACK, self.port)

    async def refuse(self) -> None:
        """Accepts no more connections, and resets those that there are: as a machine whose server is down."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.close()
            self.cut()
            await listening.wait_closed()

    def accept(self) -> _Pipe:
        pipe = _Pipe(self)
        task = asyncio.get_running_loop().create_task(self._join(pipe))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)
        return pipe

    async def _join(self, near: _Pipe) -> None:
        try:
            _, far = await asyncio.get_running_loop().create_connection(
                lambda: _Pipe(self, is_far=True), self._host, self._port
            )
        except OSError:
            if near.transport is not None:
                near.transport.abort()
            return
        near.join(far)

    def cut(self) -> None:
        """Resets every connection; new ones are accepted at once."""
        for pipe in list(self.pipes):
            if pipe.transport is not None:
                pipe.transport.abort()

    def silence(self) -> None:
        """From now on connections are accepted and carry nothing."""
        self.is_silent = True
        for pipe in self.pipes:
            if pipe.transport is not None:
                with suppress(RuntimeError):
                    pipe.transport.pause_reading()

    def resume(self) -> None:
        self.is_silent = False
        for pipe in self.pipes:
            if pipe.transport is not None:
                with suppress(RuntimeError):
                    pipe.transport.resume_reading()

    async def close(self) -> None:
        for task in self._joining:
            task.cancel()
        self.cut()
        await self.refuse()


@asynccontextmanager
async def tcp_proxy(port: int, *, host: str = _LOOPBACK) -> AsyncIterator[TcpProxy]:
    """Passes connections on to `host:port` while the context is open."""
    with held_port() as own:
        proxy = TcpProxy(host, port, at=own)
        await proxy.listen()
        try:
            yield proxy
        finally:
            await proxy.close()
