"""Carries one action out on the active tab, and waits for what it set off."""

from contextlib import suppress

import anyio

from browser_workers.actions import point_of, wait_s, web_address
from browser_workers.browser import Opening, Performed
from browser_workers.chromium import input as pointer_input
from browser_workers.chromium.calls import CallRefused
from browser_workers.chromium.happenings import Happenings
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.tab import Tab
from browser_workers.chromium.windows import Windows
from schemas.errors import PageFailed
from schemas.messages import Action, ActionKind


class Performer:
    """Of one session."""

    def __init__(self, windows: Windows, happenings: Happenings, settings: TabSettings, opening: Opening) -> None:
        self.opening = opening
        self._windows = windows
        self._happenings = happenings
        self._settings = settings
        self._acted_on: Tab | None = None
        """The tab that the last action was carried out on."""

    async def perform(self, action: Action) -> Performed:
        tab = await self._windows.active()
        self._acted_on = tab
        tab.begin_action()
        try:
            return await self._perform(tab, action)
        except PageFailed:
            # A window that closed itself under the input is no failure while there is another.
            if tab in self._windows.tabs or not self._windows.tabs:
                raise
        return await self._after()

    async def performed(self) -> Performed:
        """What was said since the last time."""
        tab = await self._windows.active()
        if status := tab.rest.take_status():
            self._happenings.note(status)
        testimony = (self._acted_on or tab).rest.testimony()
        return Performed(
            navigation_error=tab.loading.navigation_error,
            notice=self._happenings.take(),
            hit=testimony.hit,
            changes=testimony.changes,
        )

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
        is_scroll = action.kind is ActionKind.SCROLL
        await tab.rest.watch(point or (width // 2, height // 2) if is_scroll else point, names_hit=not is_scroll)
        match action.kind:
            case ActionKind.SCROLL:
                delta = -height if action.direction == "up" else height
                doing = pointer_input.scroll(page, point or (width // 2, height // 2), delta)
            case ActionKind.CLICK if point is not None:
                doing = pointer_input.click(page, point)
            case ActionKind.HOVER if point is not None:
                doing = pointer_input.hover(page, point)
            case ActionKind.TYPE:
                doing = pointer_input.replace_text(page, action.text, point)
            case _:
                return f"{action.kind.value} needs a coordinate"
        # A page that goes away under the input is no failure: what comes after it says what happened.
        with suppress(CallRefused):
            await tab.call(f"the {action.kind.value}", doing)
        return ""

    async def _navigate(self, tab: Tab, address: str) -> Performed:
        site = self.opening.site
        own = site is not None and address.startswith(f"{site.origin}/")
        url = address if own else web_address(address)
        if not url:
            return Performed(refused=f"{address[:200]!r} is no http(s) address")
        await tab.navigate(url)
        return await self.performed()

    async def _go_back(self, tab: Tab) -> Performed:
        if not await tab.navigation.is_first():
            await tab.go_back()
            return await self.performed()
        if len(self._windows.tabs) == 1:
            return Performed(refused="this is the page that the task began on: there is none before it", beyond_start=True)
        await self._windows.close(tab)
        return await self.performed()

    async def _after(self) -> Performed:
        """Waits for what the input set off."""
        await self._windows.settled()
        return await self.performed()
