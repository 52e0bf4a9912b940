"""Playwright's driver, the process through which a browser is spoken to.

Invariant: from the moment at which it may be there until its end is known, it belongs to one `Driver`; neither a start that
is given up nor an end that takes too long leaves its process, its pipes or the browser that it has started to nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import psutil
import structlog
from playwright._impl.out_of_process import PlaywrightClient
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Playwright

from browser_workers.chromium.process.kept import Kept
from browser_workers.chromium.process.processes import ProcessTree

T = TypeVar("T")

_log = structlog.get_logger()
_CLOSING_S = 2.0
"""What the driver has for ending the browser and itself."""
_REAPED_S = 10.0
"""From the driver's end until the system has told of it, at most."""


class Driver:
    """Has to be ended whether or not its start was: Playwright's own context knows its process only once all of it is up."""

    def __init__(self) -> None:
        self.kept = Kept()
        self._client: PlaywrightClient | None = None

    async def start(self) -> Playwright:
        self._client = client = PlaywrightClient()
        client._transport.on_error_future.add_done_callback(_retrieve)
        # Of a start that is given up, Playwright leaves this to fail when the driver ends, unread.
        client._connection.initialize_playwright = _read(client._connection.initialize_playwright)  # type: ignore[method-assign]
        read = self.kept.counting(client._connection._objects, client._transport.deserialize_message)
        client._transport.deserialize_message = read  # type: ignore[assignment, method-assign]
        return Playwright(await asyncio.shield(client._playwright))

    def processes(self) -> ProcessTree | None:
        """The driver and what it has started."""
        if (process := self._process) is not None:
            with suppress(psutil.Error):
                return ProcessTree(psutil.Process(process.pid))
        return None

    async def end(self, *, at_once: bool = False, processes: ProcessTree | None = None) -> None:
        """Gives driver and browser a moment to end by themselves, unless `at_once`, then ends them.

        `processes` are those of them that are known; without, they are looked for.
        """
        if (client := self._client) is None:
            return
        client._playwright.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await client._playwright
        if self._process is None:
            return
        processes = processes or self.processes()
        if not at_once:
            await self._stop(client)
        if processes is not None:
            await anyio.to_thread.run_sync(processes.kill_all)
        with anyio.move_on_after(_REAPED_S):
            await asyncio.shield(client._transport._stopped_future)

    @property
    def _process(self) -> "asyncio.subprocess.Process | None":
        return getattr(self._client._transport, "_proc", None) if self._client is not None else None

    async def _stop(self, client: PlaywrightClient) -> None:
        with anyio.move_on_after(_CLOSING_S) as patience, suppress(PlaywrightError):
            await client.stop()
        if patience.cancelled_caught:
            _log.warning("browser_killed")


def _read(call: Callable[[], Awaitable[T]]) -> Callable[[], Coroutine[Any, Any, T]]:
    """The same; what it raises counts as read, whoever has gone away meanwhile."""

    async def read() -> T:
        if (task := asyncio.current_task()) is not None:
            task.add_done_callback(_retrieve)
        return await call()

    return read


def _retrieve(future: "asyncio.Future[object]") -> None:
    if not future.cancelled():
        future.exception()
