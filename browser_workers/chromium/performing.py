"""Carries one action out on the active tab, and waits for what it set off."""

from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

import anyio

from browser_workers.actions import Point, num_lines, pixels, scroll_delta, wait_s
from browser_workers.browser import Opening, Performed
from browser_workers.chromium import input as device
from browser_workers.chromium.calls import CallRefused
from browser_workers.chromium.page_events import PageEvents
from browser_workers.chromium.paging import Paging
from browser_workers.chromium.selecting import select_option
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.side_effects import announces, last_copied, sentence
from browser_workers.chromium.tab import Tab
from browser_workers.chromium.windows import Windows
from browser_workers.keys import UnknownKey, chords_of
from schemas.errors import PageFailed
from schemas.messages import Action, ActionKind

_OF_PAGES = frozenset(
    {ActionKind.NAVIGATE, ActionKind.GO_BACK, ActionKind.NEW_TAB, ActionKind.SWITCH_TAB, ActionKind.CLOSE_TAB}
)
_PLACELESS = frozenset({ActionKind.PRESS, ActionKind.SCROLL, ActionKind.TYPE})
"""Inputs that go to the focus, or to the whole page, when they name no place."""


class ElementPoints(Protocol):
    async def point_of_element(self, tab: Tab, number: int) -> Point | str:
        """Where a click reaches an element of the tab's last observation; or a sentence that says why nowhere."""
        ...


@dataclass(frozen=True, slots=True)
class Places:
    """What an input aims at."""

    point: Point | None = None
    end: Point | None = None


class Performer:
    """Of one session."""

    def __init__(
        self, windows: Windows, page_events: PageEvents, settings: TabSettings, opening: Opening, elements: ElementPoints
    ) -> None:
        self._copied = ""
        """The episode's own clipboard."""
        self._windows = windows
        self._page_events = page_events
        self._settings = settings
        self._elements = elements
        self._paging = Paging(windows, opening)
        self._acted_on: Tab | None = None
        """The tab that the last action was carried out on."""
        self._num_opened = 0
        """How many tabs there had been before it."""

    def begin(self, opening: Opening) -> None:
        """Another episode: nothing is left of the one before."""
        self._paging.opening = opening
        self._acted_on = None
        self._copied = ""
        self._page_events.take()

    async def perform(self, action: Action) -> Performed:
        tab = await self._windows.active()
        self._acted_on, self._num_opened = tab, self._windows.num_opened
        self._windows.begin_action()
        tab.begin_action()
        try:
            match action.kind:
                case kind if kind in _OF_PAGES:
                    performed = await self._paging.perform(tab, action)
                    # Where it went by itself, it aims from then on.
                    self._windows.shown = self._windows.front
                    return await self.performed(performed)
                case ActionKind.READ_PAGE:
                    return await self.performed(Performed(page_text=await tab.text(num_lines(action))))
                case ActionKind.ANSWER:
                    return Performed()
                case ActionKind.WAIT:
                    await anyio.sleep(wait_s(action))
                case _:
                    if refusal := await self._input(tab, action):
                        return await self.performed(Performed(refused=refusal))
            return await self._after()
        except PageFailed:
            # A window that closed itself under the action is no failure while there is another.
            if tab in self._windows.tabs or not self._windows.tabs:
                raise
        return await self._after()

    async def performed(self, performed: Performed | None = None) -> Performed:
        """What was said since the last time, beside what is said already."""
        tab = await self._windows.active()
        await tab.arrive()
        if status := tab.stability.take_status():
            self._page_events.note(status)
        side_effects = tab.stability.take_side_effects()
        self._copied = last_copied(side_effects) or self._copied
        for text in filter(None, map(sentence, side_effects)):
            self._page_events.note(text)
        performed = performed or Performed()
        notice = "; ".join(filter(None, (performed.notice, self._page_events.take())))
        acted_on = self._acted_on or tab
        effect = acted_on.stability.effect()
        return replace(
            performed,
            # A window may have taken the place of the tab that was to get somewhere.
            navigation_error=tab.loading.navigation_error or acted_on.loading.navigation_error,
            notice=notice,
            hit=effect.hit,
            changes=effect.changes,
        )

    # input ------------------------------------------------------------------------------------------------------------

    async def _aim(self, tab: Tab, action: Action) -> Places | str:
        """Where the action goes, or a sentence that says why nowhere."""
        point = await self._place(tab, action.point, action.element)
        if isinstance(point, str):
            return point
        wanted = "an element's number" if self._settings.context.interaction_mode == "set_of_marks" else "a coordinate"
        if point is None and action.kind not in _PLACELESS:
            return f"{action.kind.value} needs {wanted}"
        if action.kind is not ActionKind.DRAG:
            return Places(point)
        end = await self._place(tab, action.end_point, action.end_element)
        if isinstance(end, str):
            return end
        return f"drag needs {wanted} to end at" if end is None else Places(point, end)

    async def _place(self, tab: Tab, point: tuple[float, float] | None, element: int | None) -> Point | str | None:
        if point is not None:
            return pixels(point, self._settings.viewport)
        return None if element is None else await self._elements.point_of_element(tab, element)

    async def _input(self, tab: Tab, action: Action) -> str:
        """Points, presses, types or chooses; returns why that cannot be done."""
        if self._windows.shown not in (None, tab):
            return "the tab of the last screenshot is not in front any more"
        places = await self._aim(tab, action)
        if isinstance(places, str):
            return places
        is_scroll = action.kind is ActionKind.SCROLL
        width, height = self._settings.viewport
        point = places.point or (width // 2, height // 2) if is_scroll else places.point
        await tab.stability.watch(point, scrolls=is_scroll)
        # What the page's scripts did until they let themselves be asked belongs to what was before.
        self._page_events.begin_input()
        if action.kind is ActionKind.SELECT and point is not None:
            return await select_option(tab, point, action.text)
        doing = self._device_input(tab, action, replace(places, point=point))
        if isinstance(doing, str):
            return doing
        # A page that goes away under the input is no failure: what comes after it says what happened.
        with suppress(CallRefused):
            await tab.call(f"the {action.kind.value}", doing)
        return ""

    def _device_input(self, tab: Tab, action: Action, places: Places) -> Awaitable[None] | str:
        """What mouse and keyboard are to do; or why they cannot."""
        page, point = tab.page, places.point
        doing: Awaitable[None] | str = f"{action.kind.value} cannot be done there"
        match action.kind, point:
            case ActionKind.SCROLL, (_, _):
                delta = scroll_delta(action.direction, self._settings.viewport, action.amount)
                doing = delta if isinstance(delta, str) else device.scroll(page, point, delta)
            case ActionKind.TYPE, _:
                doing = device.replace_text(page, action.text, point, enter=action.enter)
            case ActionKind.PRESS, _:
                try:
                    doing = device.press(page, chords_of(action.keys), self._copied)
                except UnknownKey as error:
                    doing = str(error)
            case ActionKind.HOVER, (_, _):
                doing = device.hover(page, point)
            case ActionKind.CLICK, (_, _):
                doing = device.click(page, point)
            case ActionKind.DOUBLE_CLICK, (_, _):
                doing = device.click(page, point, times=2)
            case ActionKind.RIGHT_CLICK, (_, _):
                doing = device.click(page, point, button="right")
            case ActionKind.DRAG, (_, _) if places.end is not None:
                doing = device.drag(page, point, places.end)
        return doing

    # effects ----------------------------------------------------------------------------------------------------------

    async def _after(self) -> Performed:
        """Waits for what the input set off."""
        tab = await self._windows.settled()
        if announces("download", tab.stability.side_effects):
            await self._page_events.downloaded()
        if announces("window", tab.stability.side_effects) and self._windows.num_opened == self._num_opened:
            await self._windows.opened(self._num_opened)
            await self._windows.settled()
        return await self.performed()
