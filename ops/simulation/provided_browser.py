"""Simulated pages in sessions of a provider: all that concerns sessions is real, but for the browsers in them.

A session's address leads to a double of DevTools: it hears the address's path once, then echoes a line for every operation,
and hangs up when the session ends.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import anyio
import anyio.abc

from browser_workers.browser import Opening
from browser_workers.providers.leases import Lease, Leases
from bus.background import companion_group
from ops.simulation.browser import SimulatedScreenshots, SimulatedSession
from schemas.errors import BrowserError, BrowserLost
from schemas.simulation_config import SimulationConfig

_ANSWER_S = 30.0
_LINE = b"\n"
_HUNG_UP = "the session's connection was closed"


class Connection:
    """To one session's browser."""

    def __init__(self, stream: anyio.abc.ByteStream, lease: Lease) -> None:
        self._stream = stream
        self._lease = lease
        self._answered = anyio.Event()

    async def listen(self) -> None:
        try:
            async for _ in self._stream:
                self._answered.set()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        self._lease.end(_HUNG_UP)

    async def watch(self) -> None:
        """Whoever waits for an answer is woken by the session's end as well."""
        await self._lease.ended.wait()
        self._answered.set()

    async def ask(self, line: bytes = _LINE) -> None:
        self._answered = anyio.Event()
        if self._lease.ended.is_set():
            raise BrowserLost(self._lease.why_ended)
        with anyio.move_on_after(_ANSWER_S) as patience:
            try:
                await self._stream.send(line)
                await self._answered.wait()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise BrowserLost(_HUNG_UP) from error
        if patience.cancelled_caught:
            raise BrowserLost(f"the session did not answer within {_ANSWER_S:g} s")
        if self._lease.ended.is_set():
            raise BrowserLost(self._lease.why_ended)


class ProvidedSession(SimulatedSession):
    def __init__(
        self, url: str, screenshots: SimulatedScreenshots, config: SimulationConfig, connection: Connection, lease: Lease
    ) -> None:
        super().__init__(url, screenshots, config)
        self._connection = connection
        self._lease = lease

    async def wait_failed(self) -> BrowserError:
        await self._lease.ended.wait()
        return BrowserLost(self._lease.why_ended)

    async def _operate(self) -> None:
        await self._connection.ask()
        await super()._operate()


class ProvidedBrowser:
    """Any number of sessions at once; open it as a context manager."""

    def __init__(self, config: SimulationConfig, leases: Leases) -> None:
        self._config = config
        self._leases = leases
        self._screenshots = SimulatedScreenshots(config)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._leases)
        self._group = await self._stack.enter_async_context(companion_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def session(self, opening: Opening) -> AsyncIterator[ProvidedSession]:
        async with self._leases.lease(opening.episode) as lease:
            parts = urlsplit(lease.place.url)
            try:
                stream = await anyio.connect_tcp(parts.hostname or "", parts.port or 0)
            except OSError as error:
                raise BrowserLost(f"the session cannot be reached: {error}") from error
            async with stream:
                connection = Connection(stream, lease)
                # Not in a group of the session's own: it is opened within a deadline that it outlasts.
                self._group.start_soon(connection.listen)
                self._group.start_soon(connection.watch)
                await connection.ask(parts.path.encode() + _LINE)
                yield ProvidedSession(opening.url, self._screenshots, self._config, connection, lease)
