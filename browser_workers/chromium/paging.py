"""Addresses, tabs and the way back: the actions that change which page is looked at."""

from browser_workers.actions import web_address
from browser_workers.browser import Opening, Performed
from browser_workers.chromium.tab import Tab
from browser_workers.chromium.windows import MAX_TABS, Windows
from schemas.messages import Action, ActionKind

_NOTHING = Performed()


class Paging:
    """Of one session. Each method returns what there is to say beside what has happened in the page."""

    def __init__(self, windows: Windows, opening: Opening) -> None:
        self.opening = opening
        self._windows = windows

    async def perform(self, tab: Tab, action: Action) -> Performed:
        match action.kind:
            case ActionKind.NAVIGATE:
                return await self._navigate(tab, action.text)
            case ActionKind.GO_BACK:
                return await self._go_back(tab)
            case ActionKind.NEW_TAB:
                return await self._open(action.text)
            case ActionKind.SWITCH_TAB:
                return await self._switch(action.tab)
            case ActionKind.CLOSE_TAB:
                return await self._close(action.tab)
            case _:
                raise ValueError(f"{action.kind.value} is about no page")

    async def _navigate(self, tab: Tab, address: str) -> Performed:
        url = self._address(address)
        if not url:
            return _no_address(address)
        await tab.navigate(url)
        return _NOTHING

    async def _go_back(self, tab: Tab) -> Performed:
        if not await tab.navigation.is_first():
            await tab.go_back()
            return _NOTHING
        if len(self._windows.tabs) == 1:
            return Performed(refused="this is the page that the task began on: there is none before it", beyond_start=True)
        await self._windows.close(tab)
        return Performed(notice="there was no page before it, so the tab was closed")

    async def _open(self, address: str) -> Performed:
        url = self._address(address)
        if address.strip() and not url:
            return _no_address(address)
        if len(self._windows.tabs) >= MAX_TABS:
            return Performed(refused=f"{MAX_TABS} tabs are open, which is the limit: close one first")
        tab = await self._windows.open_tab()
        if url:
            await tab.prepare()
            await tab.navigate(url)
            await tab.navigation.forget_history()
        return _NOTHING

    async def _switch(self, position: int | None) -> Performed:
        tab = self._at(position)
        if isinstance(tab, str):
            return Performed(refused=f"switch_tab {tab}")
        await self._windows.switch(tab)
        return _NOTHING

    async def _close(self, position: int | None) -> Performed:
        tab = await self._windows.active() if position is None else self._at(position)
        if isinstance(tab, str):
            return Performed(refused=f"close_tab {tab}")
        if len(self._windows.tabs) == 1:
            return Performed(refused="this is the only tab, which stays open")
        await self._windows.close(tab)
        return _NOTHING

    def _at(self, position: int | None) -> Tab | str:
        """The tab at a position from 1 of the last observation, or what is wrong with it."""
        tabs = self._windows.listed or self._windows.tabs
        if position is None:
            return "needs the number of a tab"
        if not 1 <= position <= len(tabs):
            there_are = "there is only tab 1" if len(tabs) == 1 else f"there are tabs 1 to {len(tabs)}"
            return f"{position} names no tab: {there_are}"
        tab = tabs[position - 1]
        return tab if tab in self._windows.tabs else f"{position} names a tab that is closed by now"

    def _address(self, text: str) -> str:
        site, text = self.opening.site, text.strip()
        own = site is not None and (text == site.origin or text.startswith(f"{site.origin}/"))
        return text if own else web_address(text)


def _no_address(text: str) -> Performed:
    return Performed(refused=f"{text[:200]!r} is no http(s) address")
