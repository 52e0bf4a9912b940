"""An episode whose chain has aged out is let go at once, and by name: nothing is begun or ended where nothing stands."""

import anyio
import pytest

from bus import chain
from bus.memory import MemoryBus
from bus.ports import Record
from schemas.bus_config import BusConfig
from schemas.errors import RecordGone
from schemas.messages import DeadLetter, Outcome
from tests import builders
from tests.deadlines import HANGS_S
from tests.unit.test_browser_worker import SUBJECTS, WORKER, Stage, stage
from tests.unit.test_feeder_time import Calendar
from trainer.feeding.admission import Admitter

pytestmark = pytest.mark.anyio
STREAM = SUBJECTS.episodes(0)


async def letter(on: Stage) -> Record:
    async with on.bus.tail(SUBJECTS.advisories, SUBJECTS.dead(SUBJECTS.tasks)) as letters:
        return await anext(letters)


async def test_a_slot_that_waits_for_an_answer_is_free_when_its_episode_has_aged_out() -> None:
    calendar = Calendar()
    async with stage(clock=calendar) as on:
        await on.admit(builders.task())
        await on.wake()
        calendar.pass_days(8)
        with anyio.fail_after(HANGS_S):
            said = (await letter(on)).message
            await on.all_acknowledged()
            while on.status.metrics["active"]:  # noqa: ASYNC110 - nothing announces it
                await anyio.sleep(0.01)
        assert isinstance(said, DeadLetter)
        assert "has aged out" in said.reason
        assert not await on.bus.subjects(STREAM, ">"), "nothing is written behind a chain that is gone"
        assert not await on.bus.subjects(SUBJECTS.trajectories, ">")
        await on.admit(builders.task("t2"))
        await on.wake()


async def test_a_task_whose_chain_has_aged_out_is_not_begun_again() -> None:
    """Whether it was played to its end while nobody was there cannot be told any more."""
    calendar, task = Calendar(), builders.task()
    async with stage(clock=calendar) as on:
        await chain.admit(on.bus, SUBJECTS, task)
        calendar.pass_days(8)
        await on.bus.append(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), task)
        with anyio.fail_after(HANGS_S):
            await letter(on)
            await on.all_acknowledged()
        assert not on.browser.sessions
        assert not await on.bus.subjects(STREAM, ">")


async def test_what_nobody_admitted_is_neither_taken_nor_ended() -> None:
    bus, task = MemoryBus(SUBJECTS, BusConfig()), builders.task()
    with pytest.raises(RecordGone, match="has aged out"):
        await chain.EpisodeChain.take(bus, SUBJECTS, task, WORKER)
    with pytest.raises(RecordGone, match="has aged out"):
        await chain.cancel(bus, SUBJECTS, task, Outcome.CANCELLED, "enough", 1.0)
    assert not await bus.subjects(STREAM, ">")


async def test_a_chain_that_ages_out_as_it_is_ended_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    calendar, task = Calendar(), builders.task()
    bus = MemoryBus(SUBJECTS, BusConfig(), clock=calendar)
    await chain.admit(bus, SUBJECTS, task)
    read_task = chain.read_task

    async def read_then_wait(*arguments: object) -> Record | None:
        found = await read_task(*arguments)  # type: ignore[arg-type]
        calendar.pass_days(8)
        return found

    monkeypatch.setattr(chain, "read_task", read_then_wait)
    assert not await Admitter(bus, SUBJECTS).end(task.episode, Outcome.CANCELLED, "late")
    assert not await bus.subjects(STREAM, ">")
