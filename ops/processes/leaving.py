"""`millrace drain` and `millrace restart`: workers are told to leave, and watched until they have left or are back.

A rolling restart takes one worker at a time: the next is told only when the successor of the one before is up.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio

from bus.access import Access
from ops.console.terminal import Console
from ops.processes.orders import Order, WorkerReport
from ops.processes.workers import Selection, Unanswered, Workers
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from schemas.config import Config
from schemas.ids import WorkerId

_LOOK_S = 0.25


async def drain(folder: RunFolder, config: Config, chosen: Selection, *, wait: bool, timeout_s: float) -> int:
    """Returns 0 when all have left (or were told to, without `wait`), 1 when one has not in time: it goes on draining."""
    console = Console(soft_wrap=True, highlight=False)
    async with _workers(folder, config) as workers:
        told = [one for one in chosen.of(await workers.present()) if await _told(workers, one, Order.DRAIN, console)]
        if not told:
            console.print("nobody of these is there")
            return 0
        if not wait:
            return 0
        staying = {one.worker for one in told}
        with anyio.move_on_after(timeout_s):
            async with anyio.create_task_group() as group:
                for one in told:
                    group.start_soon(_see_off, workers, one, staying, console)
        for worker in sorted(staying):
            console.print(f"{worker} has not left within {timeout_s:g} s: it goes on draining", markup=False)
        return 1 if staying else 0


async def restart(folder: RunFolder, config: Config, chosen: Selection, *, timeout_s: float) -> int:
    """Returns 0 when all were restarted; 1 when one is not back within `timeout_s`: those behind it were left alone."""
    console = Console(soft_wrap=True, highlight=False)
    async with _workers(folder, config) as workers:
        queue = chosen.of(await workers.present())
        for number, before in enumerate(queue, start=1):
            if not await _told(workers, before, Order.RESTART, console):
                continue
            with anyio.move_on_after(timeout_s) as patience:
                await _successor(workers, before)
            if patience.cancelled_caught:
                console.print(_not_back(before, queue[number:], timeout_s), markup=False)
                return 1
            console.print(f"{before.worker} is back ({number} of {len(queue)})", markup=False)
    return 0


@asynccontextmanager
async def _workers(folder: RunFolder, config: Config) -> AsyncIterator[Workers]:
    async with join(folder, config, role=Access.ADMIN, name="control") as bus:
        yield Workers(bus, subjects_of(config))


async def _told(workers: Workers, one: WorkerReport, order: Order, console: Console) -> bool:
    """Whether it took the order."""
    try:
        answer = await workers.tell(one.role, one.worker, order)
    except Unanswered:
        console.print(f"{one.worker} does not answer: it was told, and may not have heard", markup=False)
        return True
    if answer is None:
        return False
    console.print(f"{one.worker} is draining{_in_hand(answer)}", markup=False)
    return True


def _in_hand(report: WorkerReport) -> str:
    active = report.metrics.get("active", 0.0)
    return f", {active:.0f} in hand" if active else ""


async def _see_off(workers: Workers, before: WorkerReport, staying: set[WorkerId], console: Console) -> None:
    seen = _in_hand(before)
    async for report in _reports(workers, before):
        if report is None or (before.id and report.id != before.id):
            break
        if _in_hand(report) not in ("", seen):
            seen = _in_hand(report)
            console.print(f"{before.worker} is draining{seen}", markup=False)
    staying.discard(before.worker)
    console.print(f"{before.worker} has left", markup=False)


async def _successor(workers: Workers, before: WorkerReport) -> None:
    async for report in _reports(workers, before):
        if report is not None and report.id != before.id and report.is_up:
            return


async def _reports(workers: Workers, one: WorkerReport) -> AsyncIterator[WorkerReport | None]:
    """How it stands, again and again; a moment in which it does not answer says nothing."""
    while True:
        try:
            yield await workers.tell(one.role, one.worker, Order.STATUS)
        except Unanswered:
            continue
        await anyio.sleep(_LOOK_S)


def _not_back(before: WorkerReport, rest: Sequence[WorkerReport], timeout_s: float) -> str:
    left_alone = f" (left alone: {', '.join(one.worker for one in rest)})" if rest else ""
    return (
        f"{before.worker} is not back within {timeout_s:g} s{left_alone}: it is started anew only where something keeps it "
        "running under the same --name, as millrace node does"
    )
