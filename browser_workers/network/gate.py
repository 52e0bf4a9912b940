"""The only way out for the pages of one episode: a SOCKS 5 server on loopback that looks names up itself.

Invariants: a connection goes to exactly an address that the rules were asked about, so that a name that answers differently
the second time gains nothing; when the gate closes, every connection through it is gone.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import anyio
import anyio.lowlevel
import structlog
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from browser_workers.network.addresses import Address
from browser_workers.network.names import Names
from browser_workers.network.pipe import End, join
from browser_workers.network.refusals import Refusals
from browser_workers.network.rules import Rules, normal_host
from browser_workers.network.socks import ACCEPTED, MAX_REQUEST, Answer, Malformed, Target, answer, greeting_size, target_of

_log = structlog.get_logger()
_CONNECT_S = 15.0
"""For the look-up and all addresses together."""
_ADDRESS_S = 5.0
"""For one address of several."""
_IDLE_S = 300.0
_SWEEP_S = 60.0
_MAX_CONNECTIONS = 512
_MAX_LOGGED = 32
"""Refusals; a page can have any number of them."""


class Gate:
    """Of one episode. `serve` runs until `close`."""

    def __init__(self, rules: Rules, *, idle_s: float = _IDLE_S, sweep_s: float = _SWEEP_S) -> None:
        self.port = 0
        self.num_asked = 0
        """Connections that the browser wanted so far."""
        self._rules = rules
        self._idle_s, self._sweep_s = idle_s, sweep_s
        self._names = Names()
        self._refusals = Refusals()
        self._num_logged = 0
        self._ends: set[End] = set()
        self._wanted: MemoryObjectSendStream[tuple[_Browser, Target]]
        self._closing, self._closed = anyio.Event(), anyio.Event()

    @property
    def proxy(self) -> str:
        """As a browser wants its proxy named."""
        return f"socks5://127.0.0.1:{self.port}"

    @property
    def num_open(self) -> int:
        """Connections of either side."""
        return len(self._ends)

    @property
    def num_held_bytes(self) -> int:
        """What one side has sent and the other has not taken yet."""
        return sum(end.transport.get_write_buffer_size() for end in self._ends)

    def why_blocked(self, host: str) -> str:
        """Why `host` could lately not be reached, in a sentence; empty when nothing is known."""
        return self._refusals.why(host)

    def close(self) -> None:
        self._closing.set()

    async def wait_closed(self) -> None:
        """Until nothing of it is left."""
        await self._closed.wait()

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Raises `OSError` into the caller of `start` when nothing can be listened on."""
        # The loop calls protocols outside every task, where nothing can be started: what they want comes by this way.
        self._wanted, wanted = anyio.create_memory_object_stream[tuple[_Browser, Target]](_MAX_CONNECTIONS)
        async with self._wanted, wanted:
            server = await asyncio.get_running_loop().create_server(lambda: _Browser(self), "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._dispatch, wanted)
                    task_status.started()
                    await self._sweep()
                    group.cancel_scope.cancel()
            finally:
                self._closing.set()
                server.close()
                self._drop()
                # Connections are gone one turn of the loop after they were ended.
                await anyio.lowlevel.cancel_shielded_checkpoint()
                self._closed.set()

    async def _dispatch(self, wanted: MemoryObjectReceiveStream[tuple["_Browser", Target]]) -> None:
        async with anyio.create_task_group() as group:
            async for browser, target in wanted:
                group.start_soon(browser.connect, target)

    async def _sweep(self) -> None:
        """Until it is to close."""
        while not self._closing.is_set():
            with anyio.move_on_after(self._sweep_s):
                await self._closing.wait()
            self._drop(time.monotonic() - self._idle_s)

    def _drop(self, unused_since: float | None = None) -> None:
        """Ends the connections that nobody used since, or all."""
        for end in tuple(self._ends):
            newest = max(end.used_at, end.other.used_at if end.other is not None else 0.0)
            if unused_since is None or newest < unused_since:
                end.transport.abort()

    # one connection ---------------------------------------------------------------------------------------------------

    def admit(self, end: End) -> bool:
        """Counts a new connection in, unless there are too many."""
        if self._closing.is_set() or len(self._ends) >= _MAX_CONNECTIONS:
            return False
        self._ends.add(end)
        return True

    def discharge(self, end: End) -> None:
        self._ends.discard(end)

    def want(self, browser: "_Browser", target: Target) -> None:
        self._wanted.send_nowait((browser, target))

    async def connect(self, browser: "_Browser", target: Target) -> None:
        """Joins a browser's connection to where it wants to go, or answers why not."""
        self.num_asked += 1
        host, port = normal_host(target.host), target.port
        code, reason = Answer.TOO_LATE, f"{host}:{port} did not answer within {_CONNECT_S:g} s"
        with anyio.move_on_after(_CONNECT_S):
            code, reason = await self._reach(browser, host, port)
        if code is Answer.CONNECTED:
            self._refusals.forget(host)
            return
        is_news = self._refusals.add(host, reason)
        if is_news and code is Answer.NOT_ALLOWED and self._num_logged < _MAX_LOGGED:
            self._num_logged += 1
            _log.info("host_refused", host=host, port=port, reason=reason)
        browser.refuse(code)

    async def _reach(self, browser: "_Browser", host: str, port: int) -> tuple[Answer, str]:
        if reason := self._rules.refusal(host, port):
            return Answer.NOT_ALLOWED, reason
        try:
            addresses = await self._names.addresses(host)
        except (OSError, ValueError):
            return Answer.HOST_UNREACHABLE, f"no address is known for {host}"
        if self._rules.is_own(host, port) and self._rules.own_addresses is None:
            self._rules = replace(self._rules, own_addresses=frozenset(addresses))
        reasons = {address: self._rules.refusal(host, port, address) for address in addresses}
        permitted = [address for address in addresses if not reasons[address]]
        if not permitted:
            return Answer.NOT_ALLOWED, next(iter(reasons.values()))
        return await self._join(browser, host, port, permitted)

    async def _join(self, browser: "_Browser", host: str, port: int, addresses: Sequence[Address]) -> tuple[Answer, str]:
        loop = asyncio.get_running_loop()
        failed = Answer.TOO_LATE, f"{host}:{port} did not answer"
        for address in addresses:
            try:
                with anyio.move_on_after(_ADDRESS_S if len(addresses) > 1 else _CONNECT_S):
                    _, outside = await loop.create_connection(lambda: _Outside(self, browser), str(address), port)
                    if outside.other is not None:
                        return Answer.CONNECTED, ""
                    return Answer.REFUSED, f"the episode has {_MAX_CONNECTIONS} connections already"
            except ConnectionRefusedError:
                failed = Answer.REFUSED, f"{host}:{port} refused the connection"
            except OSError as error:
                failed = Answer.NETWORK_UNREACHABLE, f"{host}:{port} cannot be reached: {error.strerror or error}"
        return failed


class _Outside(End):
    """The site's end: joined before it can receive anything."""

    def __init__(self, gate: Gate, browser: "_Browser") -> None:
        super().__init__()
        self._gate = gate
        self._browser = browser

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._gate.admit(self):
            self._browser.join(self)
        else:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._gate.discharge(self)


class _Browser(End):
    """The browser's end: says where it wants to go, then talks to that."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate
        self._heard = b""
        self._greeted = self._asked = False
        self._connecting: anyio.CancelScope | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._gate.admit(self):
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        if self._connecting is not None:
            self._connecting.cancel()
        self._gate.discharge(self)

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            super().data_received(data)
            return
        self._heard += data
        try:
            self._listen()
        except Malformed:
            self.transport.abort()

    def _listen(self) -> None:
        if self._asked or len(self._heard) > MAX_REQUEST:
            raise Malformed("more than a request")
        if not self._greeted and (size := greeting_size(self._heard)):
            self._greeted, self._heard = True, self._heard[size:]
            self.transport.write(ACCEPTED)
        if self._greeted and (target := target_of(self._heard)) is not None:
            self._asked = True
            self._gate.want(self, target)

    async def connect(self, target: Target) -> None:
        """For as long as the browser waits for it."""
        if not self.transport.is_closing():
            with anyio.CancelScope() as self._connecting:
                await self._gate.connect(self, target)

    def join(self, outside: End) -> None:
        if self.transport.is_closing():
            outside.transport.abort()
            return
        join(self, outside)
        self.transport.write(answer(Answer.CONNECTED))

    def refuse(self, code: Answer) -> None:
        self.transport.write(answer(code))
        self.transport.close()
