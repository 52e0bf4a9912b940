"""Tracks what a page is still loading, folded from Playwright's events.

Invariant: a document that was asked for counts as loading from its request until its load event, or until it is sure that none
will come.
"""

from collections.abc import Callable, Mapping

import anyio
from playwright.async_api import Page, Request

from browser_workers.chromium.events import listen
from browser_workers.chromium.navigation_errors import ABORTED, unreachable

_ENDLESS = frozenset({"eventsource", "websocket", "media", "ping", "prefetch", "preflight"})
"""Kinds of requests that may stay open for ever: nothing is waited for on their account."""


class Loading:
    """Of one page, for as long as it lives."""

    def __init__(self, page: Page, origin: str, why_blocked: Callable[[str], str], *, loading: bool) -> None:
        self.navigation: Request | None = None
        """The document that was asked for and is not there yet."""
        self.document: Request | None = None
        """By which the one that is shown was had; None: that came before anybody listened."""
        self.navigation_error = ""
        self.strayed = not origin
        """A document was shown that is not of `origin`."""
        self.num_requests = 0
        """That anything is waited for on account of."""
        self.num_documents = 0
        """That were shown."""
        self.num_changes = 0
        """Of the document: one is asked for, is there, is complete, has another address."""
        self._why_blocked = why_blocked
        self._page = page
        self._origin = origin
        self._loading = loading
        self._undecided = False
        self._requests: set[Request] = set()
        self._ended = False
        self._changed = anyio.Event()
        # The page's own event does not tell a new document from a new address of the same one.
        listen(page.main_frame._impl_obj._event_emitter, "navigated", self._on_navigated)
        listen(page, "load", lambda _: self.on_load())

    # events -----------------------------------------------------------------------------------------------------------

    def on_request(self, request: Request) -> None:
        if request.resource_type not in _ENDLESS:
            self._requests.add(request)
            self.num_requests += 1
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self.navigation = request
            self._loading = True
            self._undecided = False
            self.num_changes += 1
        self._note_change()

    def on_request_over(self, request: Request) -> None:
        """It was answered in full, or failed."""
        self._requests.discard(request)
        if request is self.navigation:
            # Answered before a document was there: none will come. Failed: an error page will, unless it was given up.
            failure = request.failure or ""
            self.navigation = None
            self._loading = bool(failure) and failure != ABORTED
            if self._loading:
                self.navigation_error = unreachable(request.url, failure, self._why_blocked)
        self._note_change()

    def _on_navigated(self, event: Mapping[str, object]) -> None:
        """There is a new document, or a new address of the same one; or there is none, with an `error`."""
        if event.get("error"):
            return
        self.num_changes += 1
        if self.navigation is not None and event.get("newDocument"):
            self.document, self.navigation = self.navigation, None
            self.num_documents += 1
            self._requests.clear()
        self.strayed = self.strayed or not str(event["url"]).startswith(f"{self._origin}/")
        self._note_change()

    def on_load(self) -> None:
        if self.navigation is None:
            self._loading = False
            self.num_changes += 1
            self._note_change()

    def refused(self) -> None:
        """Another document was asked for and will not come; what becomes of the one that is there is not known yet."""
        self._undecided = True

    def stay(self) -> None:
        """The document that is there does, and loads no further."""
        self._undecided = False
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
    def loading(self) -> bool:
        """Whether a document is, or may yet."""
        return self._loading or self._undecided

    @property
    def busy(self) -> bool:
        return self.loading or bool(self._requests)

    async def answered(self, navigation: Request) -> None:
        """Waits until a document came of it, or none will, or another was asked for."""
        while self.navigation is navigation and not self._ended:
            await self._changed.wait()

    async def loaded(self) -> None:
        """Waits until no document is loading."""
        while self.loading and not self._ended:
            await self._changed.wait()

    async def idle(self) -> None:
        """Waits until nothing is loading."""
        while self.busy and not self._ended:
            await self._changed.wait()
