"""Observes a tab: its screenshot, marked where the run wants marks, and its accessibility tree.

Invariant: marks stand where their elements were both before and after the screenshot was taken, unless the page never rests.
"""

from collections.abc import Awaitable, Callable

import anyio.to_thread

from browser_workers.browser import PageState, View
from browser_workers.chromium.accessibility import Accessibility
from browser_workers.chromium.calls import NoAnswer
from browser_workers.chromium.elements import Elements
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.tab import Tab
from browser_workers.limits import Limits
from browser_workers.observation.marks import draw_marks
from browser_workers.observation.screenshots import is_blank
from schemas.messages import Element, Screenshot

_CAPTURES = 2
"""Screenshots taken of a page that moves before the marks of the last one have to do."""
_BETWEEN_QUALITY = 95
"""Of the screenshot that marks are drawn into, where the result is a JPEG: a PNG between costs up to a third more processor
time on pages with photographs, and WebP twice as much."""


class Observer:
    """Of one session."""

    def __init__(self, settings: TabSettings, limits: Limits) -> None:
        self.elements = Elements()
        self._settings = settings
        self._limits = limits
        self._marks = settings.context.interaction_mode == "set_of_marks"
        self._tree = settings.context.accessibility_tree
        self._rich = settings.env.use_rich_actree
        self._accessibility = Accessibility(self.elements, settings.viewport, rich=self._rich)

    async def view(self, tab: Tab, state: Callable[[], Awaitable[PageState]]) -> View:
        """With the page's state, which is asked for last. Raises `PageFailed` or `BrowserLost`."""
        if self._marks:
            screenshot, elements, tree = await self._matching(tab)
        else:
            # In this order: Chromium may draw a page a little differently once it has been asked for its tree.
            elements, tree = (), await self._text(tab)
            async with self._limits.screenshot:
                screenshot = await tab.capture()
        blank = is_blank(screenshot)
        if self._marks:
            screenshot = await anyio.to_thread.run_sync(self._drawn, screenshot, elements)
        return View(screenshot=screenshot, state=await state(), blank=blank, elements=elements, accessibility_tree=tree)

    async def _matching(self, tab: Tab) -> tuple[Screenshot, tuple[Element, ...], str]:
        """A screenshot without marks, the elements in it and the tree with their numbers."""
        quality = max(_BETWEEN_QUALITY, self._settings.config.jpeg_quality)
        seen = await self._read(tab)
        for _ in range(_CAPTURES):
            tree = await self._text(tab)
            async with self._limits.screenshot:
                screenshot = await tab.capture(jpeg_quality=quality)
            async with self._limits.metadata:
                before, seen = seen, await self.elements.read(tab)
            if seen == before:
                return screenshot, seen, tree
        return screenshot, seen, await self._text(tab)

    async def _read(self, tab: Tab) -> tuple[Element, ...]:
        async with self._limits.metadata:
            try:
                await self.elements.find_listeners(tab)
            except NoAnswer:
                # No document answers while another is waited for; whatever is asked this way gives that up.
                await tab.value_of("null")
                await self.elements.find_listeners(tab)
            return await self.elements.read(tab)

    def _drawn(self, screenshot: Screenshot, elements: tuple[Element, ...]) -> Screenshot:
        config = self._settings.config
        return draw_marks(screenshot, elements, screenshot_format=config.screenshot_format, jpeg_quality=config.jpeg_quality)

    async def _text(self, tab: Tab) -> str:
        if not self._tree:
            return ""
        if not self._marks:
            await self._read(tab)
        async with self._limits.ac_tree:
            return await self._accessibility.text(tab, numbered=self._marks)
