"""The browser side of one episode: a browser context with one page, or several when the page opens windows."""

from contextlib import suppress

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Dialog, Page, Request, Route
from playwright.async_api import Error as PlaywrightError

from browser_workers import playwright_input
from browser_workers.actions import point_of, wait_s, web_address
from browser_workers.browser import Opening, PageState, Performed, View
from browser_workers.pictures import is_blank
from browser_workers.playwright_driver import Chromium
from browser_workers.playwright_tab import CallRefused, Tab, TabSettings
from schemas.errors import BrowserError, PageFailed
from schemas.messages import Action, ActionKind

_MAX_WINDOWS = 8
_CLOSE_S = 5.0
_WINDOW_S = 8.0
"""Cap on the wait for a window that is being opened."""


class PlaywrightSession:
    """Satisfies `browser_workers.browser.Session`. The newest window is the active one; behind it stands the one before."""

    def __init__(
        self, running: Chromium, group: TaskGroup, settings: TabSettings, context: BrowserContext, opening: Opening
    ) -> None:
        self.context = context
        self.opening = opening
        self.num_episodes = 0
        """Episodes this context was opened for."""
        self._running = running
        self._group = group
        """Where what events ask for is done."""
        self._settings = settings
        self._tabs: list[Tab] = []
        self._opening_windows: set[Request] = set()
        """The first documents of windows that are not there yet."""
        self._windows_changed = anyio.Event()
        self._failed = anyio.Event()
        self._failure: BrowserError = PageFailed("the page is gone")
        self._is_over = False
        self._num_windows = 0
        self._notices: list[str] = []
        self._state: PageState | None = None
        """Of the page as the last action left it, until it is asked for."""

    async def start(self) -> None:
        """Opens the first, empty page. Raises `PageFailed` or `BrowserLost`."""
        context, timeout_s = self.context, self._settings.timeout_s
        context.on("page", self._on_page)
        context.on("dialog", self._on_dialog)
        context.on("request", self._on_request)
        context.on("requestfinished", self._on_request_over)
        context.on("requestfailed", self._on_request_over)
        if self.opening.source is not None:
            pattern = f"{self.opening.source.origin}/**"
            await self._running.call("the suite's pages", context.route(pattern, self._serve), timeout_s=timeout_s)
        await self._running.call("a page", context.new_page(), timeout_s=timeout_s)

    async def close(self) -> None:
        self._is_over = True
        with anyio.move_on_after(_CLOSE_S), suppress(PlaywrightError):
            await self.context.close()
        for tab in self._tabs:
            tab.fail("the episode is over")

    # events -----------------------------------------------------------------------------------------------------------

    def _on_page(self, page: Page) -> None:
        if len(self._tabs) >= _MAX_WINDOWS:
            self._group.start_soon(self._close_window, page)
            return
        is_first = not self._num_windows
        tab = Tab(page, self._settings, self.opening, self._running.why_gone, loading=not is_first)
        page.on("close", lambda _: self._on_closed(tab, "the page closed itself"))
        page.on("crash", lambda _: self._on_crashed(tab))
        self._tabs.append(tab)
        self._num_windows += 1
        if not is_first:
            self._opening_windows.clear()
            self._note_windows()
            self._notices.append("a new window was opened")
            self._group.start_soon(tab.prepare_window)

    @staticmethod
    async def _close_window(page: Page) -> None:
        with anyio.move_on_after(_CLOSE_S), suppress(PlaywrightError):
            await page.close()

    def _on_closed(self, tab: Tab, reason: str) -> None:
        tab.fail(reason)
        if tab in self._tabs:
            self._tabs.remove(tab)
        if not self._tabs and not self._is_over:
            self._group.start_soon(self._conclude, reason)

    def _on_crashed(self, tab: Tab) -> None:
        tab.fail("the page crashed")
        self._group.start_soon(self._conclude, tab.failure)

    async def _conclude(self, reason: str) -> None:
        self._fail(await self._running.why_gone(reason))

    def lose(self, error: BrowserError) -> None:
        """The whole browser is gone."""
        self._fail(error)
        for tab in self._tabs:
            tab.fail(str(error))

    def _fail(self, error: BrowserError) -> None:
        if not self._failed.is_set():
            self._failure = error
            self._failed.set()

    async def wait_failed(self) -> BrowserError:
        await self._failed.wait()
        return self._failure

    def _on_dialog(self, dialog: Dialog) -> None:
        if dialog.type != "beforeunload":
            self._notices.append(f"the page showed a dialog, which was dismissed: {dialog.message[:200]!r}")
        self._group.start_soon(self._answer, dialog)

    async def _answer(self, dialog: Dialog) -> None:
        with anyio.move_on_after(self._settings.timeout_s), suppress(PlaywrightError):
            await (dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())

    def _on_request(self, request: Request) -> None:
        tab = self._tab_of(request)
        if tab is not None:
            tab.loading.on_request(request)
        elif request.is_navigation_request():
            self._opening_windows.add(request)

    def _on_request_over(self, request: Request) -> None:
        self._opening_windows.discard(request)
        self._note_windows()
        if (tab := self._tab_of(request)) is not None:
            tab.loading.on_request_over(request)

    def _note_windows(self) -> None:
        self._windows_changed.set()
        self._windows_changed = anyio.Event()

    def _tab_of(self, request: Request) -> Tab | None:
        try:
            page = request.frame.page
        except PlaywrightError:
            # A service worker's, or a window's that is about to be there.
            return None
        return next((tab for tab in self._tabs if tab.page is page), None)

    async def _serve(self, route: Route) -> None:
        """Answers for the suite's origin; what it does not have is a 404."""
        source = self.opening.source
        path = route.request.url.partition("?")[0].partition("#")[0]
        document = source.documents.get(path.removeprefix(source.origin)) if source is not None else None
        with suppress(PlaywrightError):
            # The page may be gone meanwhile.
            await route.fulfill(
                status=404 if document is None else 200, content_type="text/html; charset=utf-8", body=document or b""
            )

    # the episode ------------------------------------------------------------------------------------------------------

    @property
    def reusable(self) -> bool:
        """Whether the next episode of the same suite may have this page, once it is wiped."""
        healthy = len(self._tabs) == 1 and not self._tabs[0].failure and not self._tabs[0].loading.strayed
        return self.opening.keeps_no_state and healthy and self._num_windows == 1

    async def begin(self, opening: Opening) -> None:
        """Gives a used session to the next episode: nothing of the earlier one is left but the process."""
        tab = await self._active()
        self.opening = tab.opening = opening
        self._state = None
        await tab.wipe()

    async def open(self) -> Performed:
        self.num_episodes += 1
        tab = await self._active()
        await tab.navigate(self.opening.url)
        await tab.forget_history()
        return await self._performed()

    async def state(self) -> PageState:
        state, self._state = self._state, None
        return state or await (await self._active()).state()

    async def view(self) -> View:
        self._state = None
        tab = await self._settled()
        picture = await tab.capture()
        return View(picture=picture, state=await tab.state(), blank=is_blank(picture))

    async def perform(self, action: Action) -> Performed:
        tab = await self._active()
        tab.loading.navigation_error = ""
        self._state = None
        try:
            return await self._perform(tab, action)
        except PageFailed:
            # A window that closed itself under the input is no failure while there is another.
            if tab in self._tabs or not self._tabs:
                raise
        return await self._after()

    async def _active(self) -> Tab:
        if not self._tabs:
            raise await self.wait_failed()
        return self._tabs[-1]

    async def _settled(self) -> Tab:
        """The active page, once nothing goes on in it and no window is about to take its place."""
        with anyio.move_on_after(_WINDOW_S):
            while True:
                tab = await self._active()
                await tab.settle()
                if not self._opening_windows and tab in self._tabs[-1:]:
                    return tab
                while self._opening_windows:
                    await self._windows_changed.wait()
        self._opening_windows.clear()
        return await self._active()

    # actions ----------------------------------------------------------------------------------------------------------

    async def _perform(self, tab: Tab, action: Action) -> Performed:
        match action.kind:
            case ActionKind.NAVIGATE:
                return await self._navigate(tab, action.text)
            case ActionKind.GO_BACK:
                return await self._go_back(tab)
            case ActionKind.WAIT:
                await anyio.sleep(wait_s(action))
            case ActionKind.ANSWER:
                return Performed()
            case _:
                if refusal := await self._point_at(tab, action):
                    return Performed(refused=refusal)
        return await self._after()

    async def _point_at(self, tab: Tab, action: Action) -> str:
        """Clicks, types, hovers or scrolls; returns why it cannot be done."""
        width, height = self._settings.viewport
        point, page = point_of(action, width, height), tab.page
        match action.kind:
            case ActionKind.SCROLL:
                delta = -height if action.direction == "up" else height
                doing = playwright_input.scroll(page, point or (width // 2, height // 2), delta)
            case ActionKind.CLICK if point is not None:
                doing = playwright_input.click(page, point)
            case ActionKind.HOVER if point is not None:
                doing = playwright_input.hover(page, point)
            case ActionKind.TYPE:
                doing = playwright_input.replace_text(page, action.text, point)
            case _:
                return f"{action.kind.value} needs a coordinate"
        # A page that goes away under the input is no failure: what comes after it says what happened.
        with suppress(CallRefused):
            await tab.call(f"the {action.kind.value}", doing)
        return ""

    async def _navigate(self, tab: Tab, address: str) -> Performed:
        own = self.opening.source is not None and address.startswith(f"{self.opening.source.origin}/")
        url = address if own else web_address(address)
        if not url:
            return Performed(refused=f"{address[:200]!r} is no http(s) address")
        await tab.navigate(url)
        return await self._performed()

    async def _go_back(self, tab: Tab) -> Performed:
        if not await tab.is_first():
            await tab.go_back()
            return await self._performed()
        if len(self._tabs) == 1:
            return Performed(refused="this is the page that the task began on: there is none before it", beyond_start=True)
        self._tabs.remove(tab)
        await self._close_window(tab.page)
        return await self._performed()

    async def _after(self) -> Performed:
        """Waits for what the input set off. One round trip to the page brings every event that it has sent before."""
        tab = await self._active()
        state = await tab.state()
        if self.opening.quiet_s or tab.loading.busy or self._opening_windows:
            await self._settled()
        else:
            self._state = state
        return await self._performed()

    async def _performed(self) -> Performed:
        notices, self._notices = self._notices, []
        return Performed(navigation_error=(await self._active()).loading.navigation_error, notice="; ".join(notices))
