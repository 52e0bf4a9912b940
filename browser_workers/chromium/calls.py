"""Calls of one page, each within its deadline; all end when the page does."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from playwright._impl._errors import TargetClosedError
from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from schemas.errors import BrowserError, PageFailed

T = TypeVar("T")
Json = dict[str, object]
DRIVER_S = 1.0
"""Seconds the driver gets beyond a deadline that it keeps itself."""
_OF_THE_BROWSER = "Target."
"""The browser itself answers these: no script can hold them up."""


class CallRefused(BrowserError):
    """Chromium answered a call with an error; the caller knows what that means."""


class NoAnswer(PageFailed):
    """A call's deadline passed."""


class Calls:
    """Of one page."""

    def __init__(self, page: Page, why_gone: Callable[[str], Awaitable[BrowserError]], *, timeout_s: float) -> None:
        self.page = page
        self.timeout_s = timeout_s
        self.failure = ""
        """Why no call can be answered any more."""
        self._kind: type[BrowserError] | None = None
        self._why_gone = why_gone
        """Tells the end of a page from the end of its browser."""
        self._protocol: CDPSession | None = None
        self._measured: CDPSession | None = None
        """The session that can tell what the page's main thread has used."""
        self._under_way: set[anyio.CancelScope] = set()
        self._gone = anyio.Event()

    def fail(self, reason: str, kind: type[BrowserError] | None = None) -> None:
        """Ends every call under way. `kind`: what it is known to be; else the browser is asked."""
        if not self.failure:
            self.failure, self._kind = reason, kind
        self._gone.set()
        for scope in self._under_way:
            scope.cancel()

    async def call(self, what: str, awaitable: Awaitable[T], *, timeout_s: float = 0.0) -> T:
        """What Playwright answers. Raises `CallRefused`, or `NoAnswer`, `PageFailed` or `BrowserLost` when none can come."""
        deadline_s = timeout_s or self.timeout_s
        try:
            with anyio.move_on_after(deadline_s) as scope:
                self._under_way.add(scope)
                if self.failure:
                    scope.cancel()
                return await awaitable
        except PlaywrightTimeout as error:
            raise NoAnswer(_first_line(error)) from error
        except TargetClosedError as error:
            # The event that says why comes behind the error.
            with anyio.move_on_after(DRIVER_S):
                await self._gone.wait()
            if self._kind:
                raise self._kind(self.failure) from error
            raise await self._why_gone(self.failure or "the page is gone") from error
        except PlaywrightError as error:
            raise CallRefused(_first_line(error)) from error
        finally:
            self._under_way.discard(scope)
        if self.failure:
            raise self._kind(self.failure) if self._kind else await self._why_gone(self.failure)
        raise NoAnswer(f"{what} did not return within {deadline_s:g} s")

    async def send(self, method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
        """A call of the DevTools protocol, for what Playwright has no cheap one for."""
        return await self.call(method, self._sent(method, params), timeout_s=timeout_s)

    async def open_session(self) -> CDPSession:
        """The one that `send` uses. It can tell what the page's main thread has used from now on."""
        return await self.call("a session", self._measuring_session())

    async def _sent(self, method: str, params: Json | None) -> Json:
        asks_browser = method.startswith(_OF_THE_BROWSER)
        protocol = await (self._session() if asks_browser else self._measuring_session())
        return await protocol.send(method, params)

    async def _session(self) -> CDPSession:
        if self._protocol is None:
            self._protocol = await self.page.context.new_cdp_session(self.page)
        return self._protocol

    async def _measuring_session(self) -> CDPSession:
        protocol = await self._session()
        if self._measured is not protocol:
            await protocol.send("Performance.enable")
            self._measured = protocol
        return protocol

    def forget_session(self) -> None:
        """The next `send` opens another session: an old one may be attached to what is no longer shown."""
        self._protocol = None


def _first_line(error: PlaywrightError) -> str:
    return error.message.partition("\n")[0]
