"""The browser side of one episode: a browser context with one tab, or several when the page opens windows."""

import anyio

from browser_workers import chromium_input
from browser_workers.actions import point_of, wait_s, web_address
from browser_workers.browser import Opening, PageState, Performed, View
from browser_workers.cdp import Connection, Json
from browser_workers.chromium_tab import Tab, TabSettings
from browser_workers.pictures import is_blank
from schemas.errors import BrowserError, PageFailed
from schemas.messages import Action, ActionKind

_MAX_WINDOWS = 8
_CLOSE_S = 5.0


class ChromiumSession:
    """Satisfies `browser_workers.browser.Session`. The newest window is the active one; behind it stands the one before."""

    def __init__(self, connection: Connection, settings: TabSettings, context: str, opening: Opening) -> None:
        self.context = context
        self.opening = opening
        self.num_episodes = 0
        """Episodes this context was opened for."""
        self._connection = connection
        self._settings = settings
        self._tabs: list[Tab] = []
        self._failed = anyio.Event()
        self._failure: BrowserError = PageFailed("the page is gone")
        self._num_windows = 0
        self._notices: list[str] = []

    # windows ----------------------------------------------------------------------------------------------------------

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(tab.target for tab in self._tabs)

    @property
    def reusable(self) -> bool:
        """Whether the next episode of the same suite may have this tab, once it is wiped."""
        healthy = len(self._tabs) == 1 and not self._tabs[0].failure and not self._tabs[0].strayed
        return self.opening.keeps_no_state and healthy and self._num_windows == 1

    def on_window_opened(self, target: str, session: str) -> None:
        """A window was attached to before anything ran in it; it becomes the active one."""
        if len(self._tabs) >= _MAX_WINDOWS:
            self._connection.post("Target.closeTarget", {"targetId": target})
            return
        tab = Tab(self._connection, self._settings, target, session, self.opening)
        tab.start()
        self._tabs.append(tab)
        self._num_windows += 1
        if self._num_windows > 1:
            self._notices.append("a new window was opened")

    def on_window_closed(self, target: str, reason: str) -> None:
        for tab in [tab for tab in self._tabs if tab.target == target]:
            tab.fail(reason)
            self._tabs.remove(tab)
            if not self._tabs:
                self.fail(PageFailed(reason))

    def on_window_crashed(self, target: str, reason: str) -> None:
        for tab in self._tabs:
            if tab.target == target:
                tab.fail(reason)
                self.fail(PageFailed(reason))

    def fail(self, error: BrowserError) -> None:
        if not self._failed.is_set():
            self._failure = error
            self._failed.set()

    async def wait_failed(self) -> BrowserError:
        await self._failed.wait()
        return self._failure

    @property
    def _active(self) -> Tab:
        if not self._tabs:
            raise self._failure
        return self._tabs[-1]

    # the episode ------------------------------------------------------------------------------------------------------

    async def begin(self, opening: Opening) -> None:
        """Gives a used session to the next episode: nothing of the earlier one is left but the process."""
        origin = opening.source.origin if opening.source is not None else ""
        self.opening = self._active.opening = opening
        wipe: Json = {"origin": origin, "storageTypes": "all"}
        self._connection.post("Storage.clearCookies", {"browserContextId": self.context})
        self._active.post("Storage.clearDataForOrigin", wipe)

    async def wait_ready(self) -> None:
        """Until a new window's renderer has answered, events of a navigation may be lost."""
        await self._active.evaluate("0")

    async def open(self) -> Performed:
        self.num_episodes += 1
        tab = self._active
        await tab.navigate(self.opening.url)
        await tab.call("Page.resetNavigationHistory")
        return self._performed()

    async def state(self) -> PageState:
        return await self._active.state()

    async def view(self) -> View:
        tab = self._active
        await tab.settle()
        picture = await tab.capture()
        return View(picture=picture, state=await tab.state(), blank=is_blank(picture))

    async def perform(self, action: Action) -> Performed:
        tab = self._active
        tab.navigation_error = ""
        try:
            return await self._perform(tab, action)
        except PageFailed:
            # A window that closed itself under the input is no failure while there is another.
            if tab.target in self.targets or not self.targets:
                raise
        return await self._after(self._active)

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
        return await self._after(tab)

    async def close(self) -> None:
        try:
            await self._connection.call("Target.disposeBrowserContext", {"browserContextId": self.context}, timeout_s=_CLOSE_S)
        except BrowserError:
            return
        finally:
            for target in self.targets:
                self.on_window_closed(target, "the episode is over")

    # actions ----------------------------------------------------------------------------------------------------------

    async def _point_at(self, tab: Tab, action: Action) -> str:
        """Clicks, types, hovers or scrolls; returns why it cannot be done."""
        width, height = self._settings.viewport
        point = point_of(action, width, height)
        match action.kind:
            case ActionKind.SCROLL:
                delta = -height if action.direction == "up" else height
                await chromium_input.scroll(tab, point or (width // 2, height // 2), delta)
            case ActionKind.CLICK if point is not None:
                await chromium_input.click(tab, point)
            case ActionKind.HOVER if point is not None:
                await chromium_input.hover(tab, point)
            case ActionKind.TYPE:
                if point is not None:
                    await chromium_input.click(tab, point)
                await chromium_input.replace_text(tab, action.text)
            case _:
                return f"{action.kind.value} needs a coordinate"
        return ""

    async def _navigate(self, tab: Tab, address: str) -> Performed:
        own = self.opening.source is not None and address.startswith(f"{self.opening.source.origin}/")
        url = address if own else web_address(address)
        if not url:
            return Performed(refused=f"{address[:200]!r} is no http(s) address")
        await tab.navigate(url)
        return self._performed()

    async def _go_back(self, tab: Tab) -> Performed:
        index, entries = await tab.history()
        if index > 0:
            tab.set_loading(True)
            await tab.call("Page.navigateToHistoryEntry", {"entryId": entries[index - 1]})
            return await self._after(tab)
        if len(self._tabs) == 1:
            return Performed(refused="this is the page that the task began on: there is none before it", beyond_start=True)
        await self._connection.call("Target.closeTarget", {"targetId": tab.target}, timeout_s=self._settings.timeout_s)
        self.on_window_closed(tab.target, "the window was closed")
        return self._performed()

    async def _after(self, tab: Tab) -> Performed:
        """Waits for what the input set off. One round trip to the page brings every event that it has sent before."""
        await tab.evaluate("0")
        if self._active is not tab:
            await self._active.evaluate("0")
        await self._active.settle()
        return self._performed()

    def _performed(self) -> Performed:
        tab = self._active
        notices = [*self._notices, *(notice for each in self._tabs for notice in each.notices)]
        self._notices.clear()
        for each in self._tabs:
            each.notices.clear()
        return Performed(navigation_error=tab.navigation_error, notice="; ".join(notices))
