"""The only way out for the pages of one episode: an HTTP proxy on loopback that looks names up itself.

Invariants: only who shows the episode's password is let through; a connection goes to exactly an address that the rules were
asked about, and a name leads to the same ones as long as the episode lasts; when the gate closes, every connection through it
is gone.
"""

import asyncio
import base64
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from http import HTTPStatus

import anyio
import anyio.lowlevel
import structlog
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from browser_workers.network.addresses import Address, Kind, kind
from browser_workers.network.caller import Callee, Caller
from browser_workers.network.egress import Egress, Passage
from browser_workers.network.names import Names, TooManyNames
from browser_workers.network.outside import Network
from browser_workers.network.pipe import End
from browser_workers.network.played_site import connect_played
from browser_workers.network.race import first
from browser_workers.network.refusals import Refusals
from browser_workers.network.requests import Target
from browser_workers.network.rules import Endpoint, Rules, endpoint, normal_host
from browser_workers.network.tunnel import ProxyFailed
from browser_workers.site import Site
from bus.fault import Fault, unforeseen

_log = structlog.get_logger()
_CONNECT_S = 15.0
"""For the look-up and all addresses together."""
_MOST_ADDRESSES = 8
"""Of one name, that a connection may be tried at."""
_IDLE_S = 300.0
_STRANGER_S = 20.0
"""For the password."""
_SWEEP_S = 5.0
_MAX_CONNECTIONS = 512
_MAX_STRANGERS = 64
"""Callers that have not shown the password. More than a browser opens in advance."""
_PLAIN = "http://"
"""Origins that the gate plays: those of another scheme would want a certificate that browsers trust."""
_MAX_LOGGED = 32
"""Refusals; a page can have any number of them."""
_Way = Callable[[Callable[[], End]], Awaitable[End]]
"""Connects an end that it is given. Raises `OSError`."""


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Gate:
    """Of one episode. `serve` runs until `close`. It plays `site` itself where that is one of plain HTTP, and leaves by
    `egress` for public addresses: what a person opened of others is nearer than any proxy."""

    def __init__(
        self,
        rules: Rules,
        network: Network = Network(),  # noqa: B008 - a value
        *,
        site: Site | None = None,
        egress: Egress | None = None,
        idle_s: float = _IDLE_S,
        stranger_s: float = _STRANGER_S,
        sweep_s: float = _SWEEP_S,
    ) -> None:
        self.port = 0
        self.user, self.password = "episode", secrets.token_urlsafe(32)
        self.signed_in = False
        """Whether the browser has shown the password."""
        self._credentials = b"Basic " + base64.b64encode(f"{self.user}:{self.password}".encode())
        self._rules = rules
        self._site = site if site is not None and site.origin.startswith(_PLAIN) else None
        self._played = endpoint(self._site.origin) if self._site is not None else None
        self._network, self.egress = network, egress
        self._idle_s, self._stranger_s, self._sweep_s = idle_s, stranger_s, sweep_s
        self._names = Names(network.look_up)
        self._refusals = Refusals()
        self._num_logged = 0
        self._was_warned = False
        self._faults: set[Fault] = set()
        self._ends: set[End] = set()
        self._strangers: dict[Caller, None] = {}
        """In the order in which they called."""
        self._wanted: MemoryObjectSendStream[tuple[Caller, Target]]
        self._closing, self._closed = anyio.Event(), anyio.Event()

    @property
    def proxy(self) -> str:
        """As a browser wants its proxy named."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def plays(self) -> bool:
        return self._site is not None

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
        self._wanted, wanted = anyio.create_memory_object_stream[tuple[Caller, Target]](_MAX_CONNECTIONS)
        async with self._wanted, wanted:
            server = await asyncio.get_running_loop().create_server(lambda: Caller(self), "127.0.0.1", 0)
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

    async def _dispatch(self, wanted: MemoryObjectReceiveStream[tuple[Caller, Target]]) -> None:
        async with anyio.create_task_group() as group:
            async for caller, target in wanted:
                group.start_soon(caller.connect, target)

    async def _sweep(self) -> None:
        """Until it is to close."""
        while not self._closing.is_set():
            with anyio.move_on_after(self._sweep_s):
                await self._closing.wait()
            now = time.monotonic()
            self._drop(now - self._idle_s)
            for caller in tuple(self._strangers):
                if caller.called_at < now - self._stranger_s:
                    caller.transport.abort()

    def _drop(self, unused_since: float | None = None) -> None:
        """Ends the connections that nobody used since, or all."""
        for end in tuple(self._ends):
            newest = max(end.used_at, end.other.used_at if end.other is not None else 0.0)
            if unused_since is None or newest < unused_since:
                end.transport.abort()

    # one call ---------------------------------------------------------------------------------------------------------

    def admit(self, end: End) -> bool:
        if self._closing.is_set() or len(self._ends) >= _MAX_CONNECTIONS:
            return False
        self._ends.add(end)
        if isinstance(end, Caller):
            self._strangers[end] = None
            if len(self._strangers) > _MAX_STRANGERS:
                next(iter(self._strangers)).transport.abort()
        return True

    def discharge(self, end: End) -> None:
        self._ends.discard(end)
        if isinstance(end, Caller):
            self._strangers.pop(end, None)

    def knows(self, caller: Caller, credentials: bytes) -> bool:
        if hmac.compare_digest(credentials, self._credentials):
            self._strangers.pop(caller, None)
            return True
        if self.signed_in and not self._was_warned:
            self._was_warned = True
            _log.warning("stranger_at_gate", port=self.port)
        return False

    def sign_in(self) -> None:
        self.signed_in = True

    def want(self, caller: Caller, target: Target) -> None:
        try:
            self._wanted.send_nowait((caller, target))
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            # More came and went in one turn of the loop than may be connected, or it is closing.
            caller.refuse(HTTPStatus.TOO_MANY_REQUESTS)

    async def connect(self, caller: Caller, target: Target) -> None:
        """Joins a caller to where it wants to go, or says why not."""
        host, port = normal_host(target.host), target.port
        status, reason = HTTPStatus.GATEWAY_TIMEOUT, f"{host}:{port} did not answer within {_CONNECT_S:g} s"
        try:
            with anyio.move_on_after(_CONNECT_S):
                status, reason = await self._reach(caller, host, port)
        except Exception as error:  # noqa: BLE001 - a bulkhead: one connection fails, not the browser with all episodes
            status, reason = HTTPStatus.BAD_GATEWAY, f"{host}:{port} cannot be reached: unexpected {self._met(error)}"
        if status is HTTPStatus.OK:
            self._refusals.forget(host)
            return
        is_news = self._refusals.add(host, reason)
        if is_news and status is HTTPStatus.FORBIDDEN and self._num_logged < _MAX_LOGGED:
            self._num_logged += 1
            _log.info("host_refused", host=host, port=port, reason=reason)
        caller.refuse(status)

    def _met(self, error: Exception) -> Fault:
        """Logs each kind of fault once: a page can meet one any number of times."""
        fault = Fault.of(unforeseen(error) or error)
        if fault not in self._faults:
            self._faults.add(fault)
            _log.error("connection_failed", error=fault.error, place=fault.place, exc_info=error)
        return fault

    async def _reach(self, caller: Caller, host: str, port: int) -> tuple[HTTPStatus, str]:
        if self._site is not None and Endpoint(host, port) == self._played:
            return await self._play(caller, self._site)
        egress = self.egress if self.egress is not None and not self.egress.excepts(host) else None
        with nullcontext() if egress is None else egress.passage() as passage:
            try:
                ways = await self._ways(host, port, passage)
            except _Refused as refused:
                return refused.status, refused.reason
            return await self._join(caller, host, port, ways)

    async def _ways(self, host: str, port: int, passage: Passage | None) -> list[_Way]:
        """In the order in which they are to be tried. Raises `_Refused`."""
        if reason := self._rules.refusal(host, port):
            raise _Refused(HTTPStatus.FORBIDDEN, reason)
        if passage is None or not passage.looks_up or self._rules.is_looked_up_here(host):
            permitted = await self._permitted(host, port)
            return [partial(self._connect, host, port, address, passage) for address in permitted[:_MOST_ADDRESSES]]
        if reason := self._rules.refusal_of_private_name(host):
            raise _Refused(HTTPStatus.FORBIDDEN, reason)
        return [lambda end: passage.connect(end, host, port)]

    async def _permitted(self, host: str, port: int) -> list[Address]:
        """Raises `_Refused`."""
        try:
            addresses = await self._names.addresses(host)
        except TooManyNames as error:
            raise _Refused(HTTPStatus.TOO_MANY_REQUESTS, str(error)) from error
        except (OSError, ValueError) as error:
            raise _Refused(HTTPStatus.BAD_GATEWAY, f"no address is known for {host}") from error
        reasons = {address: self._rules.refusal(host, port, address) for address in addresses}
        permitted = [address for address in addresses if not reasons[address]]
        if not permitted:
            raise _Refused(HTTPStatus.FORBIDDEN, next(iter(reasons.values())))
        return permitted

    async def _connect(self, host: str, port: int, address: Address, passage: Passage | None, end: Callable[[], End]) -> End:
        if passage is not None and kind(address) is Kind.PUBLIC:
            connected = await passage.connect(end, str(address), port)
        else:
            connected = await self._network.connect(end, address, port)
        self._names.answered(host, address)
        return connected

    async def _play(self, caller: Caller, site: Site) -> tuple[HTTPStatus, str]:
        try:
            end = await connect_played(lambda: Callee(self, caller), site)
        except OSError as error:
            return HTTPStatus.BAD_GATEWAY, f"{site.origin} cannot be played: {error.strerror or error}"
        return self._joined(end)

    async def _join(self, caller: Caller, host: str, port: int, ways: Sequence[_Way]) -> tuple[HTTPStatus, str]:
        failed = HTTPStatus.GATEWAY_TIMEOUT, f"{host}:{port} did not answer"

        async def joined_by(way: _Way) -> tuple[HTTPStatus, str] | None:
            nonlocal failed
            try:
                end = await way(lambda: Callee(self, caller))
            except OSError as error:
                failed = HTTPStatus.BAD_GATEWAY, f"{host}:{port} {_told(error)}"
                return failed if isinstance(error, ProxyFailed) and caller.other is None else None
            # Where another way was joined a moment before, that one is about to say so.
            return None if end.other is None and caller.other is not None else self._joined(end)

        return await first([partial(joined_by, way) for way in ways]) or failed

    @staticmethod
    def _joined(end: End) -> tuple[HTTPStatus, str]:
        if end.other is not None:
            return HTTPStatus.OK, ""
        return HTTPStatus.TOO_MANY_REQUESTS, f"the episode has {_MAX_CONNECTIONS} connections already"


def _told(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "refused the connection"
    return f"cannot be reached: {error.strerror or error}"
