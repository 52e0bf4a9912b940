"""Whole episodes through a real nats-server and a real Chromium, with a scripted policy."""

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import psutil
import pytest

from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.suites.demo import DemoSuite
from browser_workers.worker import BrowserWorker
from bus import chain
from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.presence import Status
from bus.server import nats_server
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import shared_queues, step_queue, streams
from schemas.config import BrowserConfig, BusConfig, EnvConfig
from schemas.ids import WorkerId
from schemas.messages import Action, ActionKind, Observation, Outcome, Role, Split, StepWake, Task, Trajectory
from tests import builders

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(90)]
CONFIG = BusConfig(run=builders.RUN)
SUBJECTS = Subjects(builders.RUN)
SIZE = (160, 210)
Policy = Callable[[Observation], Action]


def centre(observation: Observation) -> Action:
    """The oracle's click."""
    assert observation.oracle is not None
    x, y, width, height = observation.oracle
    return Action(kind=ActionKind.CLICK, point=((x + width / 2) / SIZE[0] * 1000, (y + height / 2) / SIZE[1] * 1000))


def corner(_: Observation) -> Action:
    return Action(kind=ActionKind.CLICK, point=(0, 0))


def episode(index: int, page: str = "click_button") -> Task:
    task = builders.task(f"t{index}", index=index)
    return msgspec.structs.replace(task, website=f"demo:{page}?seed={index}", demonstrate=True)


async def _answer(bus: Bus, policy: Policy) -> None:
    async with bus.work(step_queue(SUBJECTS, CONFIG, Split.TRAIN), prefetch=8) as inbox:
        async for delivery in inbox:
            async with settle(bus, delivery, WorkerId("policy")):
                wake = delivery.message
                assert isinstance(wake, StepWake)
                record = await chain.last(bus, SUBJECTS, wake.episode)
                assert record is not None
                assert isinstance(record.message, Observation)
                step = msgspec.structs.replace(
                    builders.step_request(builders.task(), wake.step),
                    episode=wake.episode,
                    attempt=wake.attempt,
                    action=policy(record.message),
                    # Nobody in particular: every wake goes to any policy.
                    worker=WorkerId(""),
                )
                await chain.answer(bus, SUBJECTS, wake.observation_seq, step)


@asynccontextmanager
async def playing(folder: Path, policy: Policy, num_slots: int = 4) -> AsyncIterator[Bus]:
    env, browser_config = EnvConfig(server_size=num_slots), BrowserConfig(viewport_width=SIZE[0], viewport_height=SIZE[1])
    name = WorkerId("browser-1")
    async with (
        nats_server(folder) as address,
        connect(address, SUBJECTS, CONFIG, name="browser") as bus,
        connect(address, SUBJECTS, CONFIG, name="policy") as policy_bus,
        PlaywrightBrowser(browser_config, env) as browser,
    ):
        await create_topology(bus, streams(SUBJECTS, CONFIG), shared_queues(SUBJECTS, CONFIG, ()))
        worker = BrowserWorker(
            bus=bus,
            subjects=SUBJECTS,
            worker=name,
            status=Status(Role.BROWSER, name),
            bus_config=CONFIG,
            env_config=env,
            browser_config=browser_config,
            browser=browser,
            suites={"demo": DemoSuite()},
        )
        async with anyio.create_task_group() as group:
            group.start_soon(_answer, policy_bus, policy)
            group.start_soon(worker.run)
            yield bus
            group.cancel_scope.cancel()


async def play(bus: Bus, tasks: list[Task]) -> list[Trajectory]:
    async with bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory"), only_new=True) as trajectories:
        for task in tasks:
            await chain.admit(bus, SUBJECTS, task)
            await bus.append(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), task)
        ended = [(await anext(trajectories)).message for _ in tasks]
    assert all(isinstance(message, Trajectory) for message in ended)
    return [message for message in ended if isinstance(message, Trajectory)]


@pytest.mark.parametrize(("policy", "reward"), [(centre, 1.0), (corner, 0.0)])
async def test_the_page_itself_rewards_the_right_click(tmp_path: Path, policy: Policy, reward: float) -> None:
    async with playing(tmp_path, policy) as bus:
        tasks = [*(episode(index) for index in range(12)), *(episode(index, "find_button") for index in range(100, 104))]
        trajectories = await play(bus, tasks)
        first = await chain.read(bus, SUBJECTS, trajectories[0].observations[0])
    assert {trajectory.episode for trajectory in trajectories} == {task.episode for task in tasks}
    assert [(each.outcome, each.environment_reward, each.num_steps) for each in trajectories] == [
        (Outcome.DONE, reward, 1)
    ] * 16
    assert first is not None
    assert isinstance(first.message, Observation)
    assert first.message.url.startswith("http://demo.millrace.test/")
    assert first.message.picture.data.startswith(b"\xff\xd8")


async def test_a_browser_killed_in_mid_episode(tmp_path: Path) -> None:
    kills = iter([True])

    def kill_then_click(observation: Observation) -> Action:
        if observation.step == 1 and next(kills, False):
            for child in psutil.Process().children(recursive=True):
                if "chrom" in child.name():
                    child.send_signal(signal.SIGKILL)
        return centre(observation) if observation.step == 1 else Action(kind=ActionKind.WAIT, seconds=0.0)

    async with playing(tmp_path, kill_then_click, num_slots=1) as bus:
        (failed,) = await play(bus, [episode(1)])
        (won,) = await play(bus, [episode(2)])
    assert (failed.outcome, failed.error) == (Outcome.FAILED, "the browser ended while it was in use")
    assert failed.num_observations == 2
    assert failed.num_steps >= 1
    assert (won.outcome, won.environment_reward) == (Outcome.DONE, 1.0)
