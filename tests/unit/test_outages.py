"""Roles read on where they were, however often the server is away: on an in-memory bus whose tails fail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bus.following import patient_tail
from bus.memory import MemoryBus
from bus.ports import Record
from bus.retry import Backoff
from schemas.errors import BusUnavailable, ChainConflict
from schemas.messages import Outcome, Trajectory
from tests.builders import RUBRIC
from tests.deadlines import HANGS_S
from tests.support.training.trainer_world import SUBJECTS, judge, train_task
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.intake import ReadingPlace, open_intake, sized
from trainer.scores import is_success

pytestmark = pytest.mark.anyio


class AwayBus(MemoryBus):
    """Away when a tail is opened first, and when each record of one is asked for first."""

    num_times = 0

    def away(self) -> bool:
        self.num_times += 1
        return self.num_times % 2 == 1

    @asynccontextmanager
    async def tail(self, stream: str, subject_filter: str, **where: Any) -> AsyncIterator[AsyncIterator[Record]]:
        if self.away():
            raise BusUnavailable("it cannot be opened")
        async with super().tail(stream, subject_filter, **where) as records:
            yield AwayTail(self, records)


class AwayTail:
    def __init__(self, bus: AwayBus, records: AsyncIterator[Record]) -> None:
        self._bus, self._records = bus, records

    def __aiter__(self) -> "AwayTail":
        return self

    async def __anext__(self) -> Record:
        if self._bus.away():
            raise BusUnavailable("it cannot be read")
        return await anext(self._records)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.following.SERVER_AWAITED", Backoff(0.0, 0.0))


async def judged() -> AwayBus:
    bus = AwayBus(SUBJECTS)
    for index in range(3):
        await judge(bus, Trajectory(task=train_task(index), attempt=1, outcome=Outcome.DONE))
    return bus


async def test_a_trainer_collects_its_iteration_through_outages() -> None:
    async def fetch(_: Trajectory) -> EpisodeSteps:
        return EpisodeSteps()

    bus = await judged()
    with anyio.fail_after(HANGS_S):
        async with open_intake(bus, SUBJECTS, fetch, is_success, rubric=RUBRIC, place=ReadingPlace(0), ahead=2) as intake:
            batch = await intake.batch(sized(3), lambda _: None)
    assert [item.seq for item in batch] == [1, 2, 3]
    assert bus.num_times >= 8, "one to open it and three to read it, each twice"


async def test_a_patient_tail_goes_on_behind_each_record_and_passes_other_errors_on() -> None:
    bus = await judged()
    with anyio.fail_after(HANGS_S):
        async with patient_tail(bus, SUBJECTS.judged, SUBJECTS.judgements(None), after_seq=1) as records:
            assert [(await anext(records)).seq for _ in range(2)] == [2, 3]
    with pytest.raises(BusUnavailable, match="cannot be opened"):
        async with patient_tail(bus, SUBJECTS.judged, SUBJECTS.judgements(None), outlasted=(ChainConflict,)):
            pass
