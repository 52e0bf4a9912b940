"""Orders to workers that do not answer at first: none is taken for restarted, or for draining, that has not heard."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from bus.subjects import Subjects
from ops.processes import leaving
from ops.processes.orders import Order, WorkerReport
from ops.processes.workers import Selection, Unanswered, Workers
from ops.run.folder import RunFolder
from schemas.config import Config
from schemas.ids import WorkerId
from schemas.messages import Role
from tests.builders import RUN
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
_EVERYBODY = Selection(everybody=True)


class CutOff:
    """One worker: it gives no answer to the first look, nor to the first `num_deaf` orders, some of which it has heard."""

    def __init__(self, num_deaf: int, *, hears: bool = False, answers: bool = True, comes_back: bool = True) -> None:
        self.told: list[Order] = []
        self._num_deaf = num_deaf
        self._hears = hears
        self._answers = answers
        self._comes_back = comes_back
        self.generation = 1
        self._draining = 0

    async def present(self) -> tuple[WorkerReport, ...]:
        return (self._report(id="", note="does not answer"),)

    async def tell(self, role: Role, worker: WorkerId, order: Order) -> WorkerReport | None:
        if order is not Order.STATUS:
            self.told.append(order)
            deaf = len(self.told) <= self._num_deaf
            if self._hears or not deaf:
                self._draining = 2
            if deaf:
                raise Unanswered("cut off")
        elif not self._answers:
            raise Unanswered("cut off")
        elif self._draining:
            self._draining -= 1
            if not self._draining:
                self.generation += 1
        return self._report() if self._comes_back or self.generation == 1 else None

    def _report(self, **changes: str) -> WorkerReport:
        state = "draining" if self._draining else "working"
        report = WorkerReport(role=Role.BROWSER, worker=WorkerId("browser-1"), id=f"process-{self.generation}", state=state)
        return msgspec.structs.replace(report, **changes)


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Callable[[CutOff], None]:
    monkeypatch.setattr(leaving, "_LOOK_S", 0.01)

    def use(worker: CutOff) -> None:
        @asynccontextmanager
        async def workers(*_: object) -> AsyncIterator[CutOff]:
            yield worker

        monkeypatch.setattr(leaving, "_workers", workers)

    return use


async def restarted(timeout_s: float) -> int:
    return await leaving.restart(RunFolder(Path()), Config(), _EVERYBODY, timeout_s=timeout_s)


async def drained(timeout_s: float) -> int:
    return await leaving.drain(RunFolder(Path()), Config(), _EVERYBODY, wait=True, timeout_s=timeout_s)


@pytest.mark.parametrize(("num_deaf", "hears"), [(0, True), (3, False), (1, True)])
async def test_who_did_not_hear_is_told_again_and_is_back_as_another_process(
    num_deaf: int, hears: bool, around: Callable[[CutOff], None], capsys: pytest.CaptureFixture[str]
) -> None:
    worker = CutOff(num_deaf, hears=hears)
    around(worker)
    assert await restarted(HANGS_S) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "browser-1 is back (1 of 1)"
    assert worker.generation == 2


@pytest.mark.parametrize("answers", [True, False])
async def test_who_never_hears_is_not_said_to_be_restarted_nor_to_drain(
    answers: bool, around: Callable[[CutOff], None], capsys: pytest.CaptureFixture[str]
) -> None:
    around(CutOff(10**9, answers=answers))
    assert await restarted(0.2) == 1
    assert capsys.readouterr().out.splitlines()[-1] == ("browser-1 was not restarted within 0.2 s: it does not answer")
    assert await drained(0.2) == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        "browser-1 has not left within 0.2 s: it does not answer, and may not have heard"
    )


async def test_who_did_not_hear_that_it_should_leave_is_told_again_and_leaves(
    around: Callable[[CutOff], None], capsys: pytest.CaptureFixture[str]
) -> None:
    worker = CutOff(3, comes_back=False)
    around(worker)
    assert await drained(HANGS_S) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "browser-1 has left"
    assert worker.told == [Order.DRAIN] * 4


class Reconnecting:
    """A server that has stood still: the worker's connection is renewed after the administrator's."""

    def __init__(self, answers: list[bytes | None]) -> None:
        self._answers = answers

    async def ask(self, subject: str, question: bytes, *, timeout_s: float) -> bytes | None:
        return self._answers.pop(0)


@pytest.mark.parametrize(("answers", "is_there"), [((False, True), True), ((False, False), False)])
async def test_who_is_not_there_for_a_moment_has_not_left(
    answers: tuple[bool, ...], is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.processes.workers._AGAIN_S", 0.0)
    report = WorkerReport(role=Role.BROWSER, worker=WorkerId("browser-1"), id="process-1", state="working")
    bus = Reconnecting([msgspec.json.encode(report) if answer else None for answer in answers])
    told = await Workers(bus, Subjects(RUN)).tell(report.role, report.worker, Order.STATUS)  # type: ignore[arg-type]
    assert told == (report if is_there else None)
