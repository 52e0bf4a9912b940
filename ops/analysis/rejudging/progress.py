"""Shows the progress of judging again: a bar in a terminal, a line now and then elsewhere; on stderr."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.text import Text

from bus.background import background
from bus.presence import Status
from ops.analysis.rejudging.draining import Remaining
from ops.console.terminal import Console

_REDRAWS_A_SECOND = 4
_LINE_S = 10.0


@asynccontextmanager
async def shown(remaining: Remaining, status: Status) -> AsyncIterator[None]:
    """Shows both as they change while the context is open."""
    console = Console(stderr=True)
    if console.is_terminal:
        async with background(lambda: _bar(console, remaining, status)):
            yield
    else:
        async with background(lambda: _lines(console, remaining, status)):
            yield
    console.print(line(remaining, status), soft_wrap=True, markup=False, highlight=False)


def line(remaining: Remaining, status: Status) -> str:
    told = f"{remaining.done} of {remaining.total} judged" if remaining.total else "nothing is left to judge"
    return "; ".join(filter(None, (told, remark(remaining, status))))


def remark(remaining: Remaining, status: Status) -> str:
    """Errors so far, and what the judge waits for while anything is left to judge; empty: nothing of this."""
    errors = int(status.metrics.get("error", 0))
    return "; ".join(filter(None, (f"{errors} errors" if errors else "", status.note if remaining.left else "")))


def empty_bar() -> Progress:
    bar = Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar.add_task("")
    return bar


def drawn(bar: Progress, remaining: Remaining, status: Status) -> Group:
    """The remark stands on lines of its own: beside it a narrow terminal has no room for the bar."""
    bar.update(bar.task_ids[0], completed=remaining.done, total=remaining.total)
    return Group(bar, Text(remark(remaining, status)))


async def _bar(console: Console, remaining: Remaining, status: Status) -> None:
    bar = empty_bar()
    draw = partial(drawn, bar, remaining, status)
    with Live(console=console, transient=True, get_renderable=draw, refresh_per_second=_REDRAWS_A_SECOND):
        await anyio.sleep_forever()


async def _lines(console: Console, remaining: Remaining, status: Status) -> None:
    while True:
        await anyio.sleep(_LINE_S)
        console.print(line(remaining, status), soft_wrap=True, markup=False, highlight=False)
