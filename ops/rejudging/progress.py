"""What a person sees while trajectories are judged: a bar in a terminal, a line now and then elsewhere; on stderr."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bus.companions import companions
from bus.presence import Status
from ops.rejudging.draining import Remaining

_REDRAW_S = 0.25
_LINE_S = 10.0


@asynccontextmanager
async def shown(remaining: Remaining, status: Status) -> AsyncIterator[None]:
    """Shows both as they change while the context is open."""
    console = Console(stderr=True)
    if console.is_terminal:
        async with companions(lambda: _bar(console, remaining, status)):
            yield
    else:
        async with companions(lambda: _lines(console, remaining, status)):
            yield
    console.print(line(remaining, status), soft_wrap=True, markup=False, highlight=False)


def line(remaining: Remaining, status: Status) -> str:
    return f"{remaining.done} of {remaining.total} judged{_remark(status)}"


def _remark(status: Status) -> str:
    errors = int(status.metrics.get("error", 0))
    counted = f", {errors} errors" if errors else ""
    return f"{counted}; {status.note}" if status.note else counted


async def _bar(console: Console, remaining: Remaining, status: Status) -> None:
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("")
        while True:
            progress.update(task, completed=remaining.done, total=remaining.total, description=_remark(status).lstrip(",; "))
            await anyio.sleep(_REDRAW_S)


async def _lines(console: Console, remaining: Remaining, status: Status) -> None:
    while True:
        await anyio.sleep(_LINE_S)
        console.print(line(remaining, status), soft_wrap=True, markup=False, highlight=False)
