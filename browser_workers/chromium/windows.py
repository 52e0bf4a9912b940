"""The tabs of one browser context: which there are, which is active, and which of them a request belongs to.

Invariant: the newest window is the active one; when it closes, the one before it is.
"""

from contextlib import suppress

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Page, Request
from playwright.async_api import Error as PlaywrightError

from browser_workers.browser import Opening
from browser_workers.chromium.happenings import Happenings
from browser_workers.chromium.launch import Chromium
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.tab import Tab
from schemas.errors import BrowserError, PageFailed

_MAX_WINDOWS = 8
_CLOSE_S = 5.0
_WINDOW_S = 8.0
"""Cap on the wait for a window that is being opened."""


class Windows:
    """Of one episode, or of several after each other where a suite's tab is used again."""

    def __init__(
        self,
        running: Chromium,
        group: TaskGroup,
        settings: TabSettings,
        context: BrowserContext,
        opening: Opening,
        happenings: Happenings,
    ) -> None:
        self.tabs: list[Tab] = []
        self.num_opened = 0
        self._running = running
        self._group = group
        self._settings = settings
        self._opening = opening
        self._happenings = happenings
        self._coming: set[Request] = set()
        """The first documents of windows that are not there yet."""
        self._changed = anyio.Event()
        self._failed = anyio.Event()
        self._failure: BrowserError = PageFailed("the page is gone")
        self._is_over = False
        context.on("page", self._on_page)
        context.on("request", self._on_request)
        context.on("requestfinished", self._on_request_over)
        context.on("requestfailed", self._on_request_over)

    def begin(self, opening: Opening) -> None:
        """The next episode's opening holds for every tab from now on."""
        self._opening = opening
        for tab in self.tabs:
            tab.opening = opening

    def end(self) -> None:
        """The episode is over: whatever closes from now on is no failure."""
        self._is_over = True

    async def active(self) -> Tab:
        """Raises `PageFailed` or `BrowserLost` when no tab is left."""
        if not self.tabs:
            raise await self.wait_failed()
        return self.tabs[-1]

    @property
    def coming(self) -> bool:
        """Whether a window is being opened."""
        return bool(self._coming)

    async def settled(self) -> Tab:
        """The active tab, once nothing goes on in it and no window is about to take its place."""
        with anyio.move_on_after(_WINDOW_S):
            while True:
                tab = await self.active()
                await tab.settle()
                if not self._coming and tab in self.tabs[-1:]:
                    return tab
                while self._coming:
                    await self._changed.wait()
        self._coming.clear()
        return await self.active()

    async def close(self, tab: Tab) -> None:
        self.tabs.remove(tab)
        await _close(tab.page)

    # failures ---------------------------------------------------------------------------------------------------------

    def lose(self, error: BrowserError) -> None:
        """The whole browser is gone."""
        self._fail(error)
        for tab in self.tabs:
            tab.fail(str(error))

    async def wait_failed(self) -> BrowserError:
        await self._failed.wait()
        return self._failure

    def _fail(self, error: BrowserError) -> None:
        if not self._failed.is_set():
            self._failure = error
            self._failed.set()

    async def _conclude(self, reason: str) -> None:
        self._fail(await self._running.why_gone(reason))

    # events -----------------------------------------------------------------------------------------------------------

    def _on_page(self, page: Page) -> None:
        if len(self.tabs) >= _MAX_WINDOWS:
            self._group.start_soon(_close, page)
            return
        is_first = not self.num_opened
        tab = Tab(page, self._settings, self._opening, self._running.why_gone, loading=not is_first)
        page.on("close", lambda _: self._on_closed(tab, "the page closed itself"))
        page.on("crash", lambda _: self._on_crashed(tab))
        self.tabs.append(tab)
        self.num_opened += 1
        if not is_first:
            self._coming.clear()
            self._note_change()
            self._happenings.note("a new window was opened")
            self._group.start_soon(tab.prepare_window)

    def _on_closed(self, tab: Tab, reason: str) -> None:
        tab.fail(reason)
        if tab in self.tabs:
            self.tabs.remove(tab)
        if not self.tabs and not self._is_over:
            self._group.start_soon(self._conclude, reason)

    def _on_crashed(self, tab: Tab) -> None:
        tab.fail(self._running.why_crashed)
        self._group.start_soon(self._conclude, tab.failure)

    def _on_request(self, request: Request) -> None:
        tab = self._tab_of(request)
        if tab is not None:
            tab.loading.on_request(request)
        elif request.is_navigation_request():
            self._coming.add(request)

    def _on_request_over(self, request: Request) -> None:
        self._coming.discard(request)
        self._note_change()
        if (tab := self._tab_of(request)) is not None:
            tab.loading.on_request_over(request)

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _tab_of(self, request: Request) -> Tab | None:
        try:
            page = request.frame.page
        except PlaywrightError:
            # A service worker's, or a window's that is about to be there.
            return None
        return next((tab for tab in self.tabs if tab.page is page), None)


async def _close(page: Page) -> None:
    with anyio.move_on_after(_CLOSE_S), suppress(PlaywrightError):
        await page.close()
