"""Ends scripts that keep a page from answering, so that the rest of the page can be observed.

Invariant: only a page, or a frame in a process of its own, that was asked and did not answer although its page was not about
to be left and its main thread ran, has its script ended. That it ran is seen by its processor time: on a machine that is full
a page may well be waiting for its turn, and one that waits for an answer of its site's runs nothing either.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec

from browser_workers.chromium.page_events import PageEvents
from browser_workers.chromium.page_frames import QUESTION, LocalRoot
from browser_workers.chromium.tab import Tab
from browser_workers.chromium.windows import Windows
from bus.background import background
from schemas.errors import BrowserError

_SCRIPT_S = 10.0
"""Seconds that a script may keep its page waiting; half an operation's deadline where that is shorter."""
_RUNNING = 0.5
"""Share of the time that it may keep its page waiting which a script must have run. One that gets less of a full machine is
waited for until it has had that much."""
_LONGEST = 10
"""Times as long it is waited for so before it is asked anew: its other frames, and new tabs, are not looked at meanwhile."""


class _Metric(msgspec.Struct):
    name: str
    value: float


class EndlessScripts:
    """Of one session."""

    def __init__(self, windows: Windows, page_events: PageEvents, *, timeout_s: float) -> None:
        self._windows = windows
        self._page_events = page_events
        self._after_s = min(_SCRIPT_S, timeout_s / 2)

    @asynccontextmanager
    async def ended(self) -> AsyncIterator[None]:
        """While the context is open, no script of a tab that is in front, or was when it was entered, lasts for ever."""
        acted_on = self._windows.front
        if acted_on is not None:
            with suppress(BrowserError):
                # What a frame's process uses can be told only where that was asked for before it hung.
                await acted_on.frames.roots()

        async def keep() -> None:
            while True:
                await anyio.sleep(self._after_s / 2)
                async with anyio.create_task_group() as group:
                    for tab in self._windows.tabs:
                        if tab in (acted_on, self._windows.front):
                            group.start_soon(self._end_in, tab)

        async with background(keep):
            yield

    async def _end_in(self, tab: Tab) -> None:
        try:
            with anyio.move_on_after(self._after_s / 2) as patience:
                await tab.prepare()
                roots = await tab.frames.roots()
        except BrowserError:
            # Whoever uses the tab is told.
            return
        if patience.cancelled_caught:
            # Its process is busy with a tab that is in nobody's way, or with one that is asked as well.
            return
        for root in roots:
            # One after the other: where several have one process, all of them answer once the first one's script is ended.
            with suppress(BrowserError):
                await self._ask(tab, root)

    async def _ask(self, tab: Tab, root: LocalRoot) -> None:
        wait_s = self._after_s / 2

        async def end_when_it_ran() -> None:
            # Behind the question: what ran before that kept nobody waiting.
            before_s = await self._processor_s(root)
            await anyio.sleep(wait_s)
            while True:
                ran_s = await self._processor_s(root) - before_s
                if ran_s >= _RUNNING * wait_s and tab.loading.navigation is None:
                    await self._end(root)
                    return
                await anyio.sleep(wait_s / 10)

        async with background(end_when_it_ran):
            await root.ask("Runtime.evaluate", QUESTION, timeout_s=_LONGEST * self._after_s)

    async def _processor_s(self, root: LocalRoot) -> float:
        """What the main thread of its process has used until now. Chromium interrupts a script to say it."""
        answer = await root.ask("Performance.getMetrics", timeout_s=self._after_s)
        metrics = msgspec.convert(answer["metrics"], list[_Metric])
        return next((metric.value for metric in metrics if metric.name == "ThreadTime"), 0.0)

    async def _end(self, root: LocalRoot) -> None:
        whose = "a frame's" if root.frame else "the page's"
        self._page_events.note(f"{whose} script did not return within {self._after_s:g} s and was ended")
        try:
            await root.ask("Runtime.terminateExecution", timeout_s=self._after_s)
        except BrowserError:
            return
