"""The tabs of one browser context: which there are, which is active, and which of them a request belongs to.

Invariants: a new tab is the active one until another is chosen; when the active one closes, the one that was active before it
is. There are never more than `MAX_TABS`.
"""

from contextlib import suppress
from dataclasses import replace

import anyio
import msgspec
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Page, Request
from playwright.async_api import Error as PlaywrightError

from browser_workers.browser import Opening, PageState
from browser_workers.chromium.events import listen
from browser_workers.chromium.page_events import PageEvents
from browser_workers.chromium.process.launch import Chromium
from browser_workers.chromium.session_pages import fit
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.tab import Tab
from schemas.errors import BrowserError, PageFailed
from schemas.messages import BrowserTab

MAX_TABS = 8
_MAX_REFUSED = 64
_TEXT_LIMIT = 2000
_LISTING_S = 2.0
_MOST_ASKED = 2
"""Times that a tab in the background is: an answer may be late on a machine that is full."""
_CLOSE_S = 5.0
_APPEARS_S = 1.0
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
        page_events: PageEvents,
    ) -> None:
        self.tabs: list[Tab] = []
        """In the order in which they were opened."""
        self.listed: tuple[Tab, ...] = ()
        """Those of the last observation: a policy counts in these."""
        self.shown: Tab | None = None
        """What a policy aims at: the one whose state was asked for last, or that it went to since."""
        self.num_opened = 0
        self._recent: list[Tab] = []
        """The same, the active one last."""
        self._num_gone = 0
        """Documents of tabs that are closed."""
        self._num_refused = 0
        self._opening_own = False
        """The next tab is one that the policy asked for."""
        self._running = running
        self._group = group
        self._settings = settings
        self._opening = opening
        self._page_events = page_events
        self._coming: set[Request] = set()
        """The first documents of windows that are not there yet."""
        self._changed = anyio.Event()
        self._failed = anyio.Event()
        self._failure: BrowserError = PageFailed("the page is gone")
        self._is_over = False
        self._context = context
        running.kept.watch(context, self._give_up)
        listen(context, "page", self._on_page, self._give_up)
        listen(context, "request", self._on_request, self._give_up)
        listen(context, "requestfinished", self._on_request_over, self._give_up)
        listen(context, "requestfailed", self._on_request_over, self._give_up)

    def begin(self, opening: Opening) -> None:
        """The next episode's opening holds for every tab from now on."""
        self._opening = opening
        for tab in self.tabs:
            tab.opening = opening
        self.listed, self.shown = (), None
        self._num_refused = 0
        self.begin_action()

    def begin_action(self) -> None:
        """What comes next follows another action, in whichever tab: one window may lead another on."""
        for tab in self.tabs:
            tab.documents.begin_action()

    def end(self) -> None:
        """The episode is over: whatever closes from now on is no failure."""
        self._is_over = True
        self._running.kept.forget(self._context)

    @property
    def front(self) -> Tab | None:
        """The active tab, while there is any."""
        return self._recent[-1] if self._recent else None

    @property
    def num_documents(self) -> int:
        """That were shown so far, in all tabs."""
        return self._num_gone + sum(tab.loading.num_documents for tab in self.tabs)

    async def active(self) -> Tab:
        """Raises `PageFailed` or `BrowserLost` when no tab is left."""
        if not self.tabs:
            raise await self.wait_failed()
        return self._recent[-1]

    def is_replaced(self, tab: Tab) -> bool:
        """Whether another has taken its place as the active one."""
        return self.front not in (None, tab)

    async def state(self, tab: Tab) -> PageState:
        """The tab's, with the list of all tabs when there are several."""
        state = await tab.state()
        # Tabs may open and close while this is asked.
        self.listed, self.shown = tuple(self.tabs), tab
        if len(self.listed) < 2:
            return state
        shown = BrowserTab(title=state.title, url=state.url, active=True)
        return replace(state, tabs=tuple([shown if each is tab else await _listed(each) for each in self.listed]))

    async def opened(self, num_opened: int) -> None:
        """Waits a moment for one more window than `num_opened`, whose coming a page has announced."""
        with anyio.move_on_after(_APPEARS_S):
            while self.num_opened <= num_opened:
                await self._changed.wait()

    @property
    def coming(self) -> bool:
        """Whether a window is being opened."""
        return bool(self._coming)

    async def settled(self) -> Tab:
        """The active tab, once nothing goes on in it and no window is about to take its place."""
        with anyio.move_on_after(min(_WINDOW_S, 3 * self._settings.timeout_s)):
            while True:
                tab = await self.active()
                try:
                    await tab.settle()
                except PageFailed:
                    if not self.is_replaced(tab):
                        raise
                if not self._coming and tab in self._recent[-1:]:
                    return tab
                while self._coming:
                    await self._changed.wait()
        self._coming.clear()
        return await self.active()

    # tabs -------------------------------------------------------------------------------------------------------------

    async def open_tab(self) -> Tab:
        """An empty one, which is active then."""
        self._opening_own = True
        try:
            page = await self._running.call("a tab", self._context.new_page(), timeout_s=self._settings.timeout_s)
        finally:
            self._opening_own = False
        tab = self._tab_of_page(page)
        if tab is None:
            raise PageFailed("the new tab was closed at once")
        await fit(self._running, self._settings, page)
        return tab

    async def switch(self, tab: Tab) -> None:
        self._recent.remove(tab)
        self._recent.append(tab)
        await tab.send("Page.bringToFront")

    async def close(self, tab: Tab) -> None:
        if tab in self.tabs:
            self._forget(tab)
        await _close(tab.page)

    def _forget(self, tab: Tab) -> None:
        self._num_gone += tab.loading.num_documents
        self.tabs.remove(tab)
        self._recent.remove(tab)

    # failures ---------------------------------------------------------------------------------------------------------

    def lose(self, error: BrowserError) -> None:
        """Nothing more can be had from any tab."""
        self._fail(error)
        for tab in self.tabs:
            tab.fail(str(error), type(error))

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
        if len(self.tabs) >= MAX_TABS:
            self._refuse(page)
            return
        is_asked_for = self._opening_own or not self.num_opened
        tab = Tab(
            page,
            self._settings,
            self._opening,
            self._running.why_gone,
            self._group,
            self._page_events.note,
            self._give_up,
            loading=not is_asked_for,
        )
        listen(page, "close", lambda _: self._on_closed(tab, "the page closed itself"), self._give_up)
        listen(page, "crash", lambda _: self._on_crashed(tab), self._give_up)
        self._page_events.watch(page)
        self.tabs.append(tab)
        self._recent.append(tab)
        self.num_opened += 1
        if not is_asked_for:
            self._no_longer_coming(page)
            self._page_events.note("a new window was opened")
            self._group.start_soon(tab.prepare_window)

    def _refuse(self, page: Page) -> None:
        """Closes a window that is one too many. A page that never ends opening them is given up."""
        self._group.start_soon(_close, page)
        self._no_longer_coming(page)
        self._page_events.note(f"the page opened more than {MAX_TABS} windows, which is the limit: the others were closed")
        self._num_refused += 1
        if self._num_refused > _MAX_REFUSED:
            self._give_up("the page opens windows without end")

    def _no_longer_coming(self, page: Page) -> None:
        self._coming = {request for request in self._coming if _page_of(request) is not page}
        self._note_change()

    def _on_closed(self, tab: Tab, reason: str) -> None:
        tab.fail(reason)
        if tab in self.tabs:
            self._forget(tab)
            if self.tabs:
                self._page_events.note("a tab closed itself")
        if not self.tabs and not self._is_over and not self._failed.is_set():
            self._group.start_soon(self._conclude, reason)

    def _on_crashed(self, tab: Tab) -> None:
        tab.fail(self._running.why_crashed())
        self._group.start_soon(self._conclude, tab.failure)

    def _on_request(self, request: Request) -> None:
        tab = self._tab_of(request)
        if tab is not None:
            tab.on_request(request)
        elif request.is_navigation_request():
            self._coming.add(request)

    def _on_request_over(self, request: Request) -> None:
        self._coming.discard(request)
        self._note_change()
        if (tab := self._tab_of(request)) is not None:
            tab.loading.on_request_over(request)

    def _give_up(self, reason: str) -> None:
        """What is known of the tabs may be wrong, or one of them holds everything up: it does so until it is closed.

        Once: a storm is seen again with each of its requests, and a call for each would hold up browser and driver further.
        """
        if self._failed.is_set() or self._is_over:
            return
        self.lose(PageFailed(reason))
        for tab in self.tabs:
            self._group.start_soon(_close, tab.page)

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _tab_of(self, request: Request) -> Tab | None:
        return self._tab_of_page(_page_of(request))

    def _tab_of_page(self, page: Page | None) -> Tab | None:
        return next((tab for tab in self.tabs if tab.page is page), None)


def _page_of(request: Request) -> Page | None:
    try:
        return request.frame.page
    except PlaywrightError:
        # A service worker's, or a window's that is about to be there.
        return None


class _Target(msgspec.Struct):
    title: str
    url: str


async def _listed(tab: Tab) -> BrowserTab:
    """What the browser knows about a tab in the background: no script in it can hold that up."""
    for _ in range(_MOST_ASKED):
        with suppress(BrowserError):
            answer = await tab.send("Target.getTargetInfo", timeout_s=_LISTING_S)
            target = msgspec.convert(answer["targetInfo"], _Target)
            return BrowserTab(title=target.title[:_TEXT_LIMIT], url=target.url[:_TEXT_LIMIT])
    return BrowserTab(title="", url=tab.page.url[:_TEXT_LIMIT])


async def _close(page: Page) -> None:
    with anyio.move_on_after(_CLOSE_S), suppress(PlaywrightError):
        await page.close()
