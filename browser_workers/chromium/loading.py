"""What a page is still loading, folded from Playwright's events.

Invariant: a document that was asked for counts as loading from its request until its load event, or until it is sure that none
will come.
"""

import time

import anyio
from playwright.async_api import Frame, Page, Request

_SETTLE_CAP_S = 8.0
_TEXT_LIMIT = 2000
_ENDLESS = frozenset({"eventsource", "websocket", "media", "ping", "prefetch", "preflight"})
"""Kinds of requests that may stay open for ever: nothing is waited for on their account."""
_ABORTED = "net::ERR_ABORTED"
"""A download, an empty answer or another navigation took this one's place: no document comes of it."""


class Loading:
    """Of one page, for as long as it lives."""

    def __init__(self, page: Page, origin: str, *, loading: bool) -> None:
        self.navigation: Request | None = None
        """The document that was asked for and is not there yet."""
        self.navigation_error = ""
        self.strayed = not origin
        """A document was shown that is not of `origin`."""
        self._page = page
        self._origin = origin
        self._loading = loading
        self._requests: set[Request] = set()
        self._ended = False
        self._changed = anyio.Event()
        page.on("framenavigated", self._on_navigated)
        page.on("load", lambda _: self.on_load())

    # events -----------------------------------------------------------------------------------------------------------

    def on_request(self, request: Request) -> None:
        if request.resource_type not in _ENDLESS:
            self._requests.add(request)
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self.navigation = request
            self._loading = True
        self._note_change()

    def on_request_over(self, request: Request) -> None:
        """It was answered in full, or failed."""
        self._requests.discard(request)
        if request is self.navigation:
            # Answered before a document was there: none will come. Failed: an error page will, unless it was given up.
            failure = request.failure or ""
            self.navigation = None
            self._loading = bool(failure) and failure != _ABORTED
            if self._loading:
                self.navigation_error = f"{request.url[:_TEXT_LIMIT]} could not be reached: {failure}"
        self._note_change()

    def _on_navigated(self, frame: Frame) -> None:
        """There is a new document, or a new address of the same one."""
        if frame != self._page.main_frame:
            return
        if self.navigation is not None:
            self.navigation = None
            self._requests.clear()
        self.strayed = self.strayed or not frame.url.startswith(f"{self._origin}/")
        self._note_change()

    def on_load(self) -> None:
        if self.navigation is None:
            self._loading = False
            self._note_change()

    def end(self) -> None:
        """The page is gone: nobody waits any longer."""
        self._ended = True
        self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # waiting ----------------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self._loading or bool(self._requests)

    async def settle(self, quiet_s: float, cap_s: float = _SETTLE_CAP_S) -> None:
        """Waits until the page has loaded and the network was quiet for `quiet_s` seconds, or `cap_s` seconds in all."""
        with anyio.move_on_after(cap_s):
            while not self._ended:
                if self.busy:
                    await self._changed.wait()
                elif not quiet_s or await self._stays_quiet(quiet_s):
                    return

    async def _stays_quiet(self, quiet_s: float) -> bool:
        until = time.monotonic() + quiet_s
        while (left := until - time.monotonic()) > 0:
            with anyio.move_on_after(left):
                await self._changed.wait()
            if self.busy or self._ended:
                return False
        return True
