"""Slots whose policy goes away, on a real nats-server: its steps go on without it, and with whoever comes next."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec
import pytest

from agents.worker import PolicyWorker
from browser_workers.worker import BrowserWorker
from bus import chain
from bus.context import WorkerContext
from bus.jetstream import JetStreamBus, connect, create_topology
from bus.ports import Bus, Record
from bus.presence import Status
from bus.server import nats_server
from bus.topology import shared_queues, step_queue, streams
from ops.simulation.browser import SimulatedBrowser, SimulatedSuite
from ops.simulation.engine import SimulatedEngine
from schemas.browser_config import BrowserConfig
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.ids import WorkerId
from schemas.messages import Outcome, Role, Split, StepHeld, StepWake, Task, Trajectory
from schemas.policy_config import PolicyConfig
from schemas.simulation_config import SimulationConfig
from tests.builders import RUN, task
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.local_weights import local_weights

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SIMULATION = SimulationConfig(screenshot_kb=1.0, policy_latency_ms=0.0, step_latency_ms=0.0)
CONFIG = BusConfig(run=RUN, step_ack_wait_s=3600.0)
"""The queue misses nobody by itself."""
FIRST, SECOND, SLOT = WorkerId("policy-1"), WorkerId("policy-2"), WorkerId("browser-1")


class World:
    def __init__(self, folder: Path, address: object, bus: JetStreamBus) -> None:
        self.folder, self.address, self.bus = folder, address, bus

    @asynccontextmanager
    async def connection(self, name: str) -> AsyncIterator[JetStreamBus]:
        async with connect(self.address, SUBJECTS, CONFIG, name=name) as bus:  # type: ignore[arg-type]
            yield bus

    async def browse(self, resend_s: float) -> None:
        async with self.connection(SLOT) as bus:
            worker = BrowserWorker(
                WorkerContext(bus, SUBJECTS, Status(Role.BROWSER, SLOT)),
                Config(
                    bus_config=CONFIG, env_config=EnvConfig(server_size=1), browser_config=BrowserConfig(resend_s=resend_s)
                ),
                browser=SimulatedBrowser(SIMULATION),
                suites={"simulated": SimulatedSuite()},
            )
            await worker.run()

    async def decide(self, name: WorkerId) -> None:
        async with self.connection(name) as bus:
            worker = PolicyWorker(
                WorkerContext(bus, SUBJECTS, Status(Role.POLICY, name)),
                Config(bus_config=CONFIG, policy_config=PolicyConfig(max_num_seqs=2)),
                engine=SimulatedEngine(SIMULATION),
                sources=local_weights(bus, SUBJECTS),
            )
            await worker.run()

    async def admit(self) -> Task:
        of = msgspec.structs.replace(task(), website="simulated:page?task=1", timeout_s=3600.0, max_steps=3)
        await chain.admit(self.bus, SUBJECTS, of)
        await self.bus.append(SUBJECTS.tasks, SUBJECTS.task(of.split, of.episode), of)
        return of

    async def ended(self) -> Trajectory:
        async with self.bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory")) as trajectories:
            message = (await anext(trajectories)).message
        assert isinstance(message, Trajectory)
        return message


@asynccontextmanager
async def world(folder: Path, *, step_age_s: float = 120.0) -> AsyncIterator[World]:
    async with nats_server(folder) as address, connect(address, SUBJECTS, CONFIG, name="test") as bus:
        specs = [
            replace(spec, max_age_s=step_age_s) if spec.name == SUBJECTS.steps else spec for spec in streams(SUBJECTS, CONFIG)
        ]
        await create_topology(bus, specs, shared_queues(SUBJECTS, CONFIG, CONFIG.rubrics))
        yield World(folder, address, bus)


async def test_work_goes_on_after_an_outage_that_outlasts_the_wake_ups(tmp_path: Path) -> None:
    """Eight ages: with pauses that grow, the slot would have asked five times in that, and next in half a minute."""
    async with world(tmp_path, step_age_s=1.0) as on, anyio.create_task_group() as group:
        await on.admit()
        async with on.bus.tail(SUBJECTS.steps, SUBJECTS.everything("step")) as wakes:
            group.start_soon(on.browse, 0.2)
            with anyio.fail_after(HANGS_S):
                for _ in range(8):
                    assert isinstance((await anext(wakes)).message, StepWake)
        group.start_soon(on.decide, FIRST)
        with anyio.fail_after(HANGS_S):
            assert (await on.ended()).outcome.finished
        group.cancel_scope.cancel()


async def taken_and_lost(bus: Bus, name: WorkerId) -> None:
    """A policy worker that takes a step from the queue, says so, and is gone without a word."""

    def accept(_: object) -> bool:
        return True

    async with (
        bus.offers(SUBJECTS.wake(name), accept),
        bus.work(step_queue(SUBJECTS, CONFIG, Split.TRAIN), prefetch=0) as inbox,
    ):
        wake = (await anext(inbox)).message
        assert isinstance(wake, StepWake)
        held = StepHeld(episode=wake.episode, attempt=wake.attempt, step=wake.step, worker=name)
        await bus.tell(SUBJECTS.held(wake.episode, wake.attempt, wake.step), held)


async def test_a_step_that_a_dead_policy_took_from_the_queue_goes_to_another(tmp_path: Path) -> None:
    """Neither the queue's lease nor the slot's resend, of an hour each, is waited for."""
    async with world(tmp_path) as on, anyio.create_task_group() as group:
        await on.admit()
        group.start_soon(on.browse, 3600.0)
        with anyio.fail_after(HANGS_S):
            async with on.connection(FIRST) as bus:
                await taken_and_lost(bus, FIRST)
            group.start_soon(on.decide, SECOND)
            ended = await on.ended()
        group.cancel_scope.cancel()
    assert ended.outcome.finished
    assert ended.outcome is not Outcome.TIMED_OUT


async def test_no_step_of_a_policy_that_is_there_is_begun_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its engine takes longer than anybody's patience with a silent one; another would be free."""
    monkeypatch.setattr("browser_workers.asking._OFFER_S", HANGS_S)  # it answers each question, at once or late
    heard = list[Record]()
    async with world(tmp_path) as on, anyio.create_task_group() as group:
        await on.admit()
        asked = anyio.Event()
        questions = list[object]()

        def accept(message: object) -> bool:
            questions.append(message)
            if len(questions) == 10:
                asked.set()
            return True

        async with on.connection(FIRST) as bus:
            queue = step_queue(SUBJECTS, CONFIG, Split.TRAIN)
            async with bus.offers(SUBJECTS.wake(FIRST), accept), bus.work(queue, prefetch=0) as inbox:
                group.start_soon(on.browse, 0.2)
                with anyio.fail_after(HANGS_S):
                    wake = (await anext(inbox)).message
                    assert isinstance(wake, StepWake)
                    held = StepHeld(episode=wake.episode, attempt=wake.attempt, step=wake.step, worker=FIRST)
                    await bus.tell(SUBJECTS.held(wake.episode, wake.attempt, wake.step), held)
                    await asked.wait()
        group.cancel_scope.cancel()
        assert questions == [held] * len(questions)
        async with on.bus.tail(SUBJECTS.steps, SUBJECTS.everything("step")) as wakes:
            heard.append(await anext(wakes))
        assert heard[0].seq == 1, "the wake-up that was taken is the only one that ever was"
