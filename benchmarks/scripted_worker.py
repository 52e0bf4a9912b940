"""One browser worker with a real Chromium, in this process, on a nats-server of its own, with a policy that is a function."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import psutil

from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.process.processes import Part, ProcessTree
from browser_workers.suites import Suite
from browser_workers.suites.demo import DemoSuite
from browser_workers.worker import BrowserWorker
from bus import chain, chain_state
from bus.context import WorkerContext
from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.presence import Status
from bus.server import nats_server
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import shared_queues, step_queue, streams
from schemas.browser_config import BrowserConfig
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.ids import EpisodeId, GroupId, PolicyVersion, RunName, TaskId, WorkerId
from schemas.messages import Action, Observation, Role, Split, StepRequest, StepWake, Task, Trajectory, VersionSpan

RUN = RunName("bench")
SUBJECTS = Subjects(RUN)
CONFIG = BusConfig(run=RUN)
VIEWPORT = (160, 210)
_EPISODE_S = 60.0

Answer = Callable[[Action], Awaitable[None]]
Policy = Callable[[Observation, Answer], Awaitable[None]]
"""Sees an observation, and answers it or not."""


class FreshSuite:
    """The demo suite's pages, each episode in a context of its own."""

    def __init__(self) -> None:
        self._demo = DemoSuite()

    def resolve(self, page: str, query: str) -> Opening:
        return replace(self._demo.resolve(page, query), keeps_no_state=False)


SUITES: Mapping[str, Suite] = {"demo": DemoSuite(), "fresh": FreshSuite()}
"""By how they have their page: `demo` keeps a tab from one episode to the next."""


def task(index: int, suite: str, max_steps: int = 10) -> Task:
    name = f"t{index:06}"
    return Task(
        run=RUN,
        episode=EpisodeId(f"train-r0000-{name}-m0"),
        group=GroupId(f"train-r0000-{name}"),
        task=TaskId(name),
        split=Split.TRAIN,
        index=index,
        policy_version=PolicyVersion(0),
        instruction="click the button",
        website=f"{suite}:click_button?seed={index}",
        max_steps=max_steps,
        timeout_s=_EPISODE_S,
        demonstrate=True,
    )


def pids(part: Part) -> list[int]:
    """Of the browser that was started last by this process."""
    drivers = [child for child in psutil.Process().children() if "node" in child.name()]
    seen = ProcessTree(max(drivers, key=psutil.Process.create_time)).look()
    return [pid for pid, each in seen.items() if each.part is part]


@dataclass
class ScriptedWorker:
    bus: Bus
    browser: PlaywrightBrowser

    async def play(self, tasks: Sequence[Task]) -> list[tuple[Trajectory, float]]:
        """How they ended, and when that was known (monotonic seconds); in the order of their ends."""
        ended: list[tuple[Trajectory, float]] = []
        async with self.bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory"), only_new=True) as records:
            for each in tasks:
                await chain.admit(self.bus, SUBJECTS, each)
                await self.bus.append(SUBJECTS.tasks, SUBJECTS.task(each.split, each.episode), each)
            while len(ended) < len(tasks):
                message = (await anext(records)).message
                if isinstance(message, Trajectory):
                    ended.append((message, time.monotonic()))
        return ended


@asynccontextmanager
async def scripted_worker(folder: Path, policy: Policy, *, num_slots: int) -> AsyncIterator[ScriptedWorker]:
    env = EnvConfig(server_size=num_slots)
    # Nothing is replaced by itself, so that what grows is seen.
    config = BrowserConfig(viewport_width=VIEWPORT[0], viewport_height=VIEWPORT[1], max_episodes=0)
    name = WorkerId("browser-1")
    async with (
        nats_server(folder) as address,
        connect(address, SUBJECTS, CONFIG, name="browser") as bus,
        connect(address, SUBJECTS, CONFIG, name="policy") as policy_bus,
        PlaywrightBrowser(config, env) as browser,
    ):
        await create_topology(bus, streams(SUBJECTS, CONFIG), shared_queues(SUBJECTS, CONFIG, ()))
        worker = BrowserWorker(
            WorkerContext(bus, SUBJECTS, Status(Role.BROWSER, name)),
            Config(bus_config=CONFIG, env_config=env, browser_config=config),
            browser=browser,
            suites=SUITES,
        )
        async with anyio.create_task_group() as group:
            for _ in range(num_slots):
                group.start_soon(_answer, policy_bus, policy)
            group.start_soon(worker.run)
            yield ScriptedWorker(bus, browser)
            group.cancel_scope.cancel()


async def _answer(bus: Bus, policy: Policy) -> None:
    async with bus.work(step_queue(SUBJECTS, CONFIG, Split.TRAIN), prefetch=1) as inbox:
        async for delivery in inbox:
            async with settle(bus, delivery, WorkerId("policy")):
                wake = delivery.message
                assert isinstance(wake, StepWake)
                newest = await chain_state.last(bus, SUBJECTS, wake.episode)
                # A second wake for a step that has its answer is of no interest.
                if newest is not None and isinstance(newest.message, Observation) and newest.seq == wake.observation_seq:
                    await policy(newest.message, _answering(bus, wake))


def _answering(bus: Bus, wake: StepWake) -> Answer:
    async def answer(action: Action) -> None:
        step = StepRequest(
            episode=wake.episode,
            attempt=wake.attempt,
            step=wake.step,
            action=action,
            parsed=True,
            response=action.kind.value,
            prompt_tokens=(),
            completion_tokens=(1,),
            logprobs=(0.0,),
            versions=(VersionSpan(start=0, end=1, version=PolicyVersion(0)),),
            # Nobody in particular: every wake goes to the queue.
            worker=WorkerId(""),
        )
        await chain.answer(bus, SUBJECTS, wake.observation_seq, step)

    return answer
