"""Workers that are told to leave, on the in-memory bus: what they hold is finished, and nothing more is taken."""

import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from bus.chain import publish_trajectory
from bus.draining import Drain
from bus.handoff import Handoff
from bus.memory import MemoryBus
from bus.presence import Status
from judges.episode import JudgedEpisode
from judges.judge import Ruling
from judges.named.environment_v1 import EnvironmentJudge
from ops.processes.orders import WorkerReport
from ops.processes.workers import Selection
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.ids import WorkerId
from schemas.messages import Outcome, Role, Verdict
from schemas.objective_config import ObjectiveConfig
from tests import builders
from tests.deadlines import HANGS_S
from tests.support.training.learning_world import Recorder, play_random, train
from tests.support.training.trainer_world import SUBJECTS as TRAINED
from tests.support.training.trainer_world import judge
from tests.unit import test_browser_worker as browsing
from tests.unit import test_judge_worker as judging
from tests.unit import test_policy_worker as answering

pytestmark = [pytest.mark.anyio]


@asynccontextmanager
async def until_it_leaves(run: Callable[[], Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """The body has to have the worker leave by itself."""
    with anyio.fail_after(HANGS_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            yield


async def test_a_wait_ends_when_leaving_is_requested_and_what_came_before_is_kept() -> None:
    drain, items = Drain(), Handoff[str]()
    items.put("first")
    assert await drain.unless(items.__anext__) == "first"
    found: list[str | None] = []

    async def wait() -> None:
        found.append(await drain.unless(items.__anext__))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        items.put("second")  # handed over, though its reader has not run again yet
        drain.request(comes_back=True)
    assert found == ["second"]
    assert await drain.unless(items.__anext__) is None
    assert (drain.requested, drain.comes_back, items.num_readers) == (True, True, 0)
    drain.request()
    assert not drain.comes_back, "the last word counts"


def test_a_heartbeat_says_that_the_worker_drains() -> None:
    status = Status(Role.JUDGE, WorkerId("j"), state="waiting")
    assert status.heartbeat(1.0).state == "waiting"
    status.drain.request()
    assert status.heartbeat(1.0).state == "draining"


async def test_a_browser_plays_its_episodes_to_their_end_and_takes_no_other() -> None:
    async with browsing.stage(server_size=1) as on:
        await on.admit(builders.task("held"), builders.task("queued"))
        _, wake = await on.wake()
        on.status.drain.request()
        await on.answer(wake)
        trajectory = await on.ended()
        assert (trajectory.outcome, trajectory.attempt) == (Outcome.DONE, 1)
        assert trajectory.episode == builders.task("held").episode
        with anyio.fail_after(HANGS_S):
            while on.browser.num_open or on.status.metrics.get("active"):
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        queued = await on.bus.subjects(browsing.SUBJECTS.tasks, browsing.SUBJECTS.everything("task"))
        assert len(queued) == 1
        assert len(on.browser.sessions) == 1


async def test_a_policy_answers_the_steps_it_accepted_and_declines_others() -> None:
    bus = MemoryBus(answering.SUBJECTS)
    gate = anyio.Event()
    engine = answering.ScriptedEngine(gate=gate)
    worker = answering.worker_of(bus, engine, slots=1)
    held, waiting, late = [await answering.an_episode(bus, name) for name in ("t1", "t2", "t3")]
    async with bus.listen(f"{builders.RUN}.live.>") as answers, until_it_leaves(worker.run):
        await anyio.wait_all_tasks_blocked()
        for browser in (held, waiting):
            await browser.wake(await browser.observe(), "p1")
        await anyio.wait_all_tasks_blocked()
        worker._drain.request()
        wake = await late.observe()
        assert not await bus.offer(answering.SUBJECTS.wake(WorkerId("p1")), wake, timeout_s=1)
        await late.wake(wake)  # any worker's, but no longer this one's
        gate.set()
        assert len({(await anext(answers)).subject for _ in range(2)}) == 2
    assert len(engine.requests) == 2
    assert await bus.subjects(answering.SUBJECTS.steps, answering.SUBJECTS.everything("step"))


class GatedJudge:
    name = EnvironmentJudge.name

    def __init__(self) -> None:
        self.begun, self.gate = anyio.Event(), anyio.Event()

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        self.begun.set()
        await self.gate.wait()
        return Ruling(verdict=Verdict.SUCCESS, reward=1.0)


async def test_a_judge_judges_what_it_holds() -> None:
    bus, status = MemoryBus(judging.SUBJECTS, BusConfig(), judging.RUBRICS), Status(Role.JUDGE, builders.WORKER)
    gated = GatedJudge()
    async with judging.judging(bus, gated, status=status):
        await publish_trajectory(bus, judging.SUBJECTS, builders.trajectory(builders.task("held")))
        await gated.begun.wait()
        status.drain.request()
        await publish_trajectory(bus, judging.SUBJECTS, builders.trajectory(builders.task("late")))
        gated.gate.set()
        assert (await judging.first_judgement(bus)).episode == builders.task("held").episode
        await anyio.wait_all_tasks_blocked()
        assert len(await bus.subjects(judging.SUBJECTS.judged, judging.SUBJECTS.judgements(None))) == 1


async def trained(bus: MemoryBus, root: Path, recorder: Recorder, status: Status | None = None) -> list[str]:
    """Trains towards two versions; returns those that are announced."""
    with anyio.fail_after(HANGS_S):
        await train(bus, root, recorder, ObjectiveConfig(), num_iterations=2, batch=3, status=status)
    return sorted(await bus.subjects(TRAINED.checkpoints, TRAINED.everything("checkpoint")))


async def test_a_trainer_leaves_behind_a_version_and_its_successor_goes_on_there(tmp_path: Path) -> None:
    bus, draw, recorder, status = MemoryBus(TRAINED), random.Random(0), Recorder(), Status(Role.TRAINER, builders.WORKER)
    async with anyio.create_task_group() as group:

        async def drain_when_training() -> None:
            while status.state != "training":
                await anyio.lowlevel.checkpoint()
            status.drain.request()

        group.start_soon(drain_when_training)
        for index in range(6):
            await judge(bus, await play_random(bus, builders.task(f"t{index}"), draw), 1.0)
        assert await trained(bus, tmp_path, recorder, status) == ["test.checkpoint.0", "test.checkpoint.1"]
    assert len(await trained(bus, tmp_path, recorder)) == 3


async def test_a_trainer_that_waits_for_judgements_leaves_at_once(tmp_path: Path) -> None:
    bus, status = MemoryBus(TRAINED), Status(Role.TRAINER, builders.WORKER)
    async with anyio.create_task_group() as group:

        async def drain_when_waiting() -> None:
            while status.state != "waiting":
                await anyio.lowlevel.checkpoint()
            status.drain.request()

        group.start_soon(drain_when_waiting)
        await judge(bus, await play_random(bus, builders.task(), random.Random(0)), 1.0)
        assert len(await trained(bus, tmp_path, Recorder(), status)) == 1


def test_workers_are_selected_by_name_by_role_or_all() -> None:
    def report(role: Role, name: str) -> WorkerReport:
        return WorkerReport(role=role, worker=WorkerId(name), id=name, state="waiting")

    present = [report(Role.TRAINER, "t"), report(Role.BROWSER, "b2"), report(Role.BROWSER, "b1"), report(Role.POLICY, "p")]
    assert [one.worker for one in Selection(everybody=True).of(present)] == ["b1", "b2", "p", "t"]
    assert [one.worker for one in Selection(roles=(Role.BROWSER,)).of(present)] == ["b1", "b2"]
    assert [one.worker for one in Selection(names=("t", "b1")).of(present)] == ["b1", "t"]
    with pytest.raises(ConfigurationError, match="there is no worker x: there are b1, b2, p, t"):
        Selection(names=("x", "b1")).of(present)
    for given in ({}, {"names": ("b1",), "everybody": True}):
        with pytest.raises(ConfigurationError, match="say which workers"):
            Selection(**given)  # type: ignore[arg-type]
