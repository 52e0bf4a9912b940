"""Says what is installed, what is missing, and how to get it."""

import argparse
import logging
from collections.abc import Awaitable, Callable, Sequence

import anyio
from rich.table import Table

from ops.console.terminal import Console
from ops.launch.checks import CHECKS, Check, Health, checks_of
from ops.run.logs import quiet_logs

_MARKS = {Health.GOOD: "[green]✓[/]", Health.NOTE: "[yellow]•[/]", Health.MISSING: "[bold red]✗[/]"}
_AT_ONCE = 2
"""Checks that run side by side: they start real processes."""


EXAMPLE = "millrace doctor browser judge"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "roles",
        nargs="*",
        type=_role,
        metavar="ROLE",
        help=f"what this machine is to run: {', '.join(CHECKS)} (default: the quickstart, which is all of them)",
    )


def _role(text: str) -> str:
    if text not in CHECKS:
        raise argparse.ArgumentTypeError(f"there is no {text!r}: write {', '.join(CHECKS)}")
    return text


def run(options: argparse.Namespace) -> int:
    """Returns 0 when what was asked about can run here, else 1."""
    console = Console()
    # The parts that are tried here log as they do in a run; the table says it better.
    with console.status("looking at this machine"), quiet_logs(logging.CRITICAL):
        checks = anyio.run(examine, checks_of(options.roles))
    console.print(table(checks))
    what = " and ".join(options.roles) or "The quickstart"
    missing = [check.part for check in checks if check.health is Health.MISSING]
    if missing:
        console.print(f"{what} cannot run yet; missing: {', '.join(missing)}.", style="bold red", markup=False)
        return 1
    how = ": make run, or millrace quickstart" if not options.roles else ""
    console.print(f"{what} can run here{how}.", style="green", markup=False)
    return 0


async def examine(checks: Sequence[Callable[[], Awaitable[Check]]]) -> list[Check]:
    """Runs every check; the results are in their order."""
    limit = anyio.Semaphore(_AT_ONCE)
    results: dict[int, Check] = {}

    async def one(index: int, check: Callable[[], Awaitable[Check]]) -> None:
        async with limit:
            results[index] = await check()

    async with anyio.create_task_group() as group:
        for index, check in enumerate(checks):
            group.start_soon(one, index, check)
    return [results[index] for index in range(len(checks))]


def table(checks: Sequence[Check]) -> Table:
    drawn = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("", "part", "found", "how to get it"):
        drawn.add_column(title, overflow="fold", header_style="bright_black")
    for check in checks:
        drawn.add_row(_MARKS[check.health], check.part, _plain(check.found), _plain(check.remedy))
    return drawn


def _plain(text: str) -> str:
    return text.replace("[", "\\[")
