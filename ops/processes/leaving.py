"""`millrace drain` and `millrace restart`: workers are told to leave, and watched until they have left or are back.

A rolling restart takes one worker at a time: the next is told only when the successor of the one before is up.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

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
        asked = [await _told(workers, one, Order.DRAIN, console) for one in chosen.of(await workers.present())]
        told = [leaver for leaver in asked if leaver is not None]
        if not told:
            console.print("nobody of these is there")
            return 0
        if not wait:
            return 0
        staying = {leaver.worker: leaver for leaver in told}
        with anyio.move_on_after(timeout_s):
            async with anyio.create_task_group() as group:
                for leaver in told:
                    group.start_soon(_see_off, leaver, staying, console)
        for worker, leaver in sorted(staying.items()):
            why = "it goes on draining" if leaver.heard else "it does not answer, and may not have heard"
            console.print(f"{worker} has not left within {timeout_s:g} s: {why}", markup=False)
        return 1 if staying else 0


async def restart(folder: RunFolder, config: Config, chosen: Selection, *, timeout_s: float) -> int:
    """Returns 0 when all were restarted; 1 when one is not back within `timeout_s`: those behind it were left alone."""
    console = Console(soft_wrap=True, highlight=False)
    async with _workers(folder, config) as workers:
        queue = chosen.of(await workers.present())
        for number, one in enumerate(queue, start=1):
            leaver = await _told(workers, one, Order.RESTART, console)
            if leaver is None:
                continue
            with anyio.move_on_after(timeout_s) as patience:
                await _successor(leaver)
            if patience.cancelled_caught:
                console.print(_not_back(leaver, queue[number:], timeout_s), markup=False)
                return 1
            console.print(f"{leaver.worker} is back ({number} of {len(queue)})", markup=False)
    return 0


@asynccontextmanager
async def _workers(folder: RunFolder, config: Config) -> AsyncIterator[Workers]:
    async with join(folder, config, role=Access.ADMIN, name="control") as bus:
        yield Workers(bus, subjects_of(config))


@dataclass
class _Leaver:
    """A worker that was told to leave, and is told again until it has heard."""

    workers: Workers
    order: Order
    process: WorkerReport
    """Of the process that is to leave; without an id where it has not answered yet."""
    heard: bool

    @property
    def worker(self) -> WorkerId:
        return self.process.worker

    async def reports(self) -> AsyncIterator[WorkerReport | None]:
        """How it or its successor stands, again and again; a moment in which it does not answer says nothing."""
        while True:
            with suppress(Unanswered):
                yield await self._look()
            await anyio.sleep(_LOOK_S)

    async def _look(self) -> WorkerReport | None:
        report = await self._tell(Order.STATUS)
        if report is None or self.has_left(report):
            return report
        self.process = report
        if report.state != "draining":
            report = await self._tell(self.order)
        self.heard = True
        return report

    def has_left(self, report: WorkerReport) -> bool:
        """Whether it is another process that answers."""
        return bool(self.process.id) and report.id != self.process.id

    async def _tell(self, order: Order) -> WorkerReport | None:
        return await self.workers.tell(self.process.role, self.process.worker, order)


async def _told(workers: Workers, one: WorkerReport, order: Order, console: Console) -> _Leaver | None:
    """None: it has left before."""
    try:
        answer = await workers.tell(one.role, one.worker, order)
    except Unanswered:
        console.print(f"{one.worker} does not answer: it was told, and may not have heard", markup=False)
        return _Leaver(workers, order, one, heard=False)
    if answer is None:
        return None
    console.print(f"{one.worker} is draining{_in_hand(answer)}", markup=False)
    return _Leaver(workers, order, answer, heard=True)


def _in_hand(report: WorkerReport) -> str:
    active = report.metrics.get("active", 0.0)
    return f", {active:.0f} in hand" if active else ""


async def _see_off(leaver: _Leaver, staying: dict[WorkerId, _Leaver], console: Console) -> None:
    seen = _in_hand(leaver.process)
    async for report in leaver.reports():
        if report is None or leaver.has_left(report):
            break
        if _in_hand(report) not in ("", seen):
            seen = _in_hand(report)
            console.print(f"{leaver.worker} is draining{seen}", markup=False)
    del staying[leaver.worker]
    console.print(f"{leaver.worker} has left", markup=False)


async def _successor(leaver: _Leaver) -> None:
    async for report in leaver.reports():
        if report is not None and leaver.has_left(report) and report.is_up:
            return


def _not_back(leaver: _Leaver, rest: Sequence[WorkerReport], timeout_s: float) -> str:
    left_alone = f" (left alone: {', '.join(one.worker for one in rest)})" if rest else ""
    if not leaver.heard:
        return f"{leaver.worker} was not restarted within {timeout_s:g} s{left_alone}: it does not answer"
    return (
        f"{leaver.worker} is not back within {timeout_s:g} s{left_alone}: it is started anew only where something keeps it "
        "running under the same --name, as millrace node does"
    )
