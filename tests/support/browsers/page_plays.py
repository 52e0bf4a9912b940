"""Whole episodes through a real nats-server, browser worker, Chromium and judge worker, answered by a scripted policy."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import msgspec

from browser_workers.browser import Browser
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.suites import Suite
from browser_workers.worker import BrowserWorker
from bus import chain
from bus.context import WorkerContext
from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.presence import Status
from bus.server import nats_server
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import shared_queues, step_queue, streams
from judges.named.environment_v1 import EnvironmentJudge
from judges.worker import JudgeWorker
from schemas.browser_config import BrowserConfig
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.errors import ChainConflict
from schemas.ids import WorkerId
from schemas.messages import Action, AnyMessage, Judgement, Observation, Role, Split, StepWake, Task, Trajectory
from tests import builders
from tests.deadlines import HANGS_S

CONFIG = BusConfig(run=builders.RUN, task_ack_wait_s=HANGS_S)
"""Nobody plays on what another has lost: a process that has no turn for a while begins no further attempt."""
SUBJECTS = Subjects(builders.RUN)
SIZE = (160, 210)
Policy = Callable[[Observation], Action | Sequence[Action]]
"""One action, or several of one answer."""


async def answer_steps(bus: Bus, policy: Policy) -> None:
    async with bus.work(step_queue(SUBJECTS, CONFIG, Split.TRAIN), prefetch=8) as inbox:
        async for delivery in inbox:
            async with settle(bus, delivery, WorkerId("policy")):
                wake = delivery.message
                assert isinstance(wake, StepWake)
                # A slot that waits for long, as on a busy machine, asks again: this wake-up may be of a step that is answered.
                waiting = await chain.open_observation(bus, SUBJECTS, wake)
                if waiting is None:
                    continue
                said = policy(waiting.observation)
                action, *further = [said] if isinstance(said, Action) else said
                step = msgspec.structs.replace(
                    builders.step_request(builders.task(), wake.step),
                    episode=wake.episode,
                    attempt=wake.attempt,
                    action=action,
                    further=tuple(further),
                    # Nobody in particular: every wake goes to any policy.
                    worker=WorkerId(""),
                )
                with suppress(ChainConflict):
                    await chain.answer(bus, SUBJECTS, waiting.seq, step)


@asynccontextmanager
async def playing(
    folder: Path,
    policy: Policy,
    suites: Mapping[str, Suite],
    *,
    num_slots: int = 4,
    context: ContextConfig | None = None,
    size: tuple[int, int] = SIZE,
    watched: Callable[[Browser], Browser] = lambda browser: browser,
    rubrics: Sequence[str] = (EnvironmentJudge.name,),
    record_network: bool = False,
) -> AsyncIterator[Bus]:
    """`rubrics` are the judges that have a queue; the environment's is the one that runs."""
    env = EnvConfig(server_size=num_slots)
    browser_config = BrowserConfig(viewport_width=size[0], viewport_height=size[1], record_network=record_network)
    name = WorkerId("browser-1")
    async with (
        nats_server(folder) as address,
        connect(address, SUBJECTS, CONFIG, name="browser") as bus,
        connect(address, SUBJECTS, CONFIG, name="policy") as policy_bus,
        connect(address, SUBJECTS, CONFIG, name="judge") as judge_bus,
        PlaywrightBrowser(browser_config, env, context) as browser,
    ):
        await create_topology(bus, streams(SUBJECTS, CONFIG), shared_queues(SUBJECTS, CONFIG, tuple(rubrics)))
        worker = BrowserWorker(
            WorkerContext(bus, SUBJECTS, Status(Role.BROWSER, name)),
            Config(bus_config=CONFIG, env_config=env, browser_config=browser_config),
            browser=watched(browser),
            suites=suites,
        )
        judge = JudgeWorker(
            WorkerContext(judge_bus, SUBJECTS, Status(Role.JUDGE, WorkerId("judge-1"))),
            Config(bus_config=CONFIG),
            judge=EnvironmentJudge(),
        )
        async with anyio.create_task_group() as group:
            group.start_soon(answer_steps, policy_bus, policy)
            group.start_soon(judge.run)
            group.start_soon(worker.run)
            yield bus
            group.cancel_scope.cancel()


async def play(bus: Bus, tasks: Sequence[Task]) -> list[Trajectory]:
    """How the tasks' episodes ended, in the order in which they did."""
    ended = await _play(bus, tasks, SUBJECTS.trajectories, SUBJECTS.everything("trajectory"))
    assert all(isinstance(message, Trajectory) for message in ended)
    return [message for message in ended if isinstance(message, Trajectory)]


async def judged(bus: Bus, tasks: Sequence[Task]) -> list[Judgement]:
    """What the judge said of the tasks' episodes, in the order in which it did."""
    ended = await _play(bus, tasks, SUBJECTS.judged, SUBJECTS.everything("judged"))
    assert all(isinstance(message, Judgement) for message in ended)
    return [message for message in ended if isinstance(message, Judgement)]


async def _play(bus: Bus, tasks: Sequence[Task], stream: str, subject: str) -> list[AnyMessage]:
    async with bus.tail(stream, subject, only_new=True) as records:
        for task in tasks:
            await chain.admit(bus, SUBJECTS, task)
            await bus.append(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), task)
        return [(await anext(records)).message for _ in tasks]
