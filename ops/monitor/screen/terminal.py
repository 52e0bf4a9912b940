"""Shows a monitor until somebody quits: on the alternate screen of a terminal, elsewhere as a line now and then."""

from collections.abc import Callable
from dataclasses import replace

import anyio
from rich.console import Console
from rich.live import Live

from ops.monitor.screen.frame import Shown, View, frame, summary_line
from ops.monitor.screen.keyboard import pressed

_REDRAW_S = 1.0
_LINE_S = 10.0
_QUIT = "q"


class Terminal:
    def __init__(self, console: Console, shown: Callable[[], Shown]) -> None:
        self._console = console
        self._shown = shown
        self._view = View.OVERVIEW
        self._pressed = anyio.Event()

    async def run(self) -> None:
        """Returns when somebody presses q."""
        if not self._console.is_terminal:
            await self._lines()
        async with anyio.create_task_group() as group:
            group.start_soon(self._draw)
            if await self._obey():
                group.cancel_scope.cancel()

    async def _draw(self) -> None:
        console = self._console
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                self._pressed = anyio.Event()
                shown = replace(self._shown(), view=self._view)
                live.update(frame(shown, console.width, console.height), refresh=True)
                with anyio.move_on_after(_REDRAW_S):
                    await self._pressed.wait()

    async def _obey(self) -> bool:
        """Whether somebody wants to leave; False: there is no keyboard."""
        views = {view.value: view for view in View}
        async for key in pressed():
            if key == _QUIT:
                return True
            if key in views:
                self._view = views[key]
                self._pressed.set()
        return False

    async def _lines(self) -> None:
        while True:
            self._console.print(summary_line(self._shown()), soft_wrap=True, highlight=False, markup=False)
            await anyio.sleep(_LINE_S)
