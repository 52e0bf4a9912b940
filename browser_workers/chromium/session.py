"""The browser side of one episode: a browser context, its windows, and what is done and seen in them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Route

from browser_workers.browser import Opening, PageState, Performed, View
from browser_workers.chromium.block_watch import BlockWatch
from browser_workers.chromium.contexts import let_out
from browser_workers.chromium.endless_scripts import EndlessScripts
from browser_workers.chromium.observing import Observer
from browser_workers.chromium.page_errors import PageErrors
from browser_workers.chromium.page_events import PageEvents
from browser_workers.chromium.performing import Performer
from browser_workers.chromium.process.launch import Chromium
from browser_workers.chromium.recording import Recording
from browser_workers.chromium.session_pages import fit, take_over
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.site_routes import answer
from browser_workers.chromium.tab import Tab
from browser_workers.chromium.windows import Windows
from browser_workers.limits import Limits
from browser_workers.network.reach import Reach
from schemas.errors import BrowserError, PageFailed
from schemas.messages import Action, Blockage
from schemas.site import site_of

_LOOKS = 4
"""At a page whose place another may take meanwhile."""
_BOUNDS = Path(__file__).parent / "scripts" / "bounds.js"


class PlaywrightSession:
    """Satisfies `browser_workers.browser.Session`."""

    def __init__(
        self,
        running: Chromium,
        group: TaskGroup,
        settings: TabSettings,
        limits: Limits,
        context: BrowserContext,
        opening: Opening,
        reach: Reach,
    ) -> None:
        self.context = context
        self.opening = opening
        self.num_episodes = 0
        """Episodes this context was opened for."""
        self._running = running
        self.reach = reach
        self._settings = settings = replace(settings, why_blocked=reach.why_blocked)
        self._limits = limits
        page_events = PageEvents(context, group, timeout_s=settings.timeout_s)
        self._windows = Windows(running, group, settings, context, opening, page_events)
        self._page_errors = PageErrors(context, listens=settings.context.page_errors)
        self._recording = Recording(context, group)
        self._block_watch = self._watch(opening)
        self._endless_scripts = EndlessScripts(self._windows, page_events, timeout_s=settings.timeout_s)
        self._observer = Observer(settings, limits)
        self._performer = Performer(self._windows, page_events, settings, opening, self._observer.elements)

    def _watch(self, opening: Opening) -> BlockWatch:
        return BlockWatch(self._windows, opening, self.reach.egress, check_s=self._settings.config.challenge_wait_s)

    # life -------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Opens the first, empty page. Raises `PageFailed` or `BrowserLost`."""
        context, timeout_s = self.context, self._settings.timeout_s
        await self._running.call("bounds", context.add_init_script(path=_BOUNDS), timeout_s=timeout_s)
        page = await self._running.call("a page", context.new_page(), timeout_s=timeout_s, until_crash=True)
        await fit(self._running, self._settings, page)
        await take_over(self._running, self._settings, context, page)
        await let_out(self._running, self._settings, await self._windows.active(), self.reach)
        if self.opening.site is not None and not self.reach.plays:
            pattern = f"{self.opening.site.origin}/**"
            await self._running.call("the site's pages", context.route(pattern, self._serve), timeout_s=timeout_s)

    async def _serve(self, route: Route) -> None:
        if self.opening.site is not None:
            await answer(route, self.opening.site)

    async def close(self) -> None:
        self._windows.end()
        try:
            # A session ends with all that it has, by whoever provides it.
            if not self._running.lost.is_set() and not self._running.is_session:
                with suppress(BrowserError):
                    await self._running.call("the end of a context", self.context.close(), timeout_s=self._settings.timeout_s)
        finally:
            self.reach.close()
        for tab in self._windows.tabs:
            tab.fail("the episode is over")

    def lose(self, error: BrowserError) -> None:
        """The whole browser is gone."""
        self._windows.lose(error)

    async def wait_failed(self) -> BrowserError:
        return await self._windows.wait_failed()

    @property
    def reusable(self) -> bool:
        """Whether the next episode of the same suite may have this page, once it is wiped."""
        tabs = self._windows.tabs
        healthy = len(tabs) == 1 and not tabs[0].failure and not tabs[0].loading.strayed
        return self.opening.keeps_no_state and healthy and self._windows.num_opened == 1

    async def begin(self, opening: Opening) -> None:
        """Gives a used session to the next episode: nothing of the earlier one is left but the process."""
        tab = await self._windows.active()
        self.opening = opening
        self._page_errors.begin()
        self._recording.begin(None)
        self._windows.begin(opening)
        self._performer.begin(opening)
        self._block_watch = self._watch(opening)
        await tab.wipe()

    # the episode ------------------------------------------------------------------------------------------------------

    async def open(self) -> Performed:
        self.num_episodes += 1
        tab = await self._windows.active()
        async with self._limits.navigate, self._endless_scripts.ended():
            await tab.prepare()
            self._recording.begin(self.opening.network)
            await tab.navigate(self.opening.url)
        await tab.navigation.forget_history()
        performed = await self._performer.performed()
        async with self._endless_scripts.ended():
            blockage = await self._led_to()
        return replace(performed, blockage=blockage, num_documents=self._windows.num_documents)

    async def perform(self, action: Action) -> Performed:
        num_documents = self._windows.num_documents
        self._page_errors.begin_action()
        async with self._limits.action(action.kind), self._endless_scripts.ended():
            performed = await self._performer.perform(action)
            blockage = await self._led_to()
        return replace(performed, blockage=blockage, num_documents=self._windows.num_documents - num_documents)

    async def _led_to(self) -> Blockage | None:
        with suppress(PageFailed):
            return await self._block_watch.look()
        # Whoever asks for its screenshot is told.
        return None

    async def state(self) -> PageState:
        return await self._state_of(await self._windows.active())

    async def _state_of(self, tab: Tab) -> PageState:
        async with self._limits.page_metadata:
            return await self._windows.state(tab)

    async def view(self) -> View:
        async with self._endless_scripts.ended():
            view = await self._view()
            return replace(view, page_errors=self._page_errors.read())

    async def _view(self) -> View:
        """Of one tab, which is the active one unless another takes its place at every look."""
        for looks_left in reversed(range(_LOOKS)):
            tab = await self._windows.settled()
            try:
                view = await self._observer.view(tab, partial(self._state_of, tab))
            except PageFailed:
                if not (looks_left and self._windows.is_replaced(tab)):
                    raise
                continue
            if not (looks_left and self._windows.is_replaced(tab)):
                return view
        raise AssertionError("the last look returns or raises")

    @property
    def egress(self) -> str:
        return self.reach.egress.name if self.reach.egress is not None else ""

    def has_other_egress(self) -> bool:
        egress = self.reach.egress
        return egress is not None and egress.has_other(site_of(self.opening.url))

    async def blockage(self) -> Blockage | None:
        async with self._endless_scripts.ended():
            return await self._block_watch.look()

    async def pass_over_blockage(self) -> None:
        async with self._endless_scripts.ended():
            await self._block_watch.pass_over()

    async def page_values(self, expressions: Sequence[str]) -> tuple[str, ...]:
        tab = await self._windows.settled()
        async with self._limits.metadata:
            return tuple([await tab.value_of(expression) for expression in expressions])
