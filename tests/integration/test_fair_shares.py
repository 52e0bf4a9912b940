"""Training and evaluation share slots and sequences: neither waits for the other's queue to run dry.

Everything is real but the pages and the model. What is checked is the order of the records, not the time that they took.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec
import pytest

from agents.worker import PolicyWorker
from browser_workers.worker import BrowserWorker
from bus.context import WorkerContext
from bus.jetstream import JetStreamBus, connect, create_topology
from bus.presence import Status
from bus.server import nats_server
from bus.topology import shared_queues, streams
from ops.simulation.browser import SimulatedBrowser, SimulatedSuite
from ops.simulation.engine import SimulatedEngine
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.ids import WorkerId
from schemas.messages import Role, Split, Task, Trajectory
from schemas.policy_config import PolicyConfig
from schemas.simulation_config import SimulationConfig
from tests.builders import RUN, task
from tests.contract.backends import SUBJECTS
from tests.support.bus.local_weights import local_weights
from trainer.feeding.admission import Admitter

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
CONFIG = BusConfig(run=RUN)
SIMULATION = SimulationConfig(screenshot_kb=1.0, mean_steps=6.0, max_steps=12, policy_latency_ms=2.0, step_latency_ms=0.0)
NUM_MANY, NUM_FEW, NUM_BEFORE = 240, 5, 5


def tasks(split: Split, number: int) -> list[Task]:
    return [
        msgspec.structs.replace(
            task(f"{split.value}{index}", split=split, max_steps=12), website=f"simulated:page?task={split.value}{index}"
        )
        for index in range(number)
    ]


@asynccontextmanager
async def workers(bus: JetStreamBus, *, num_slots: int, max_num_seqs: int) -> AsyncIterator[None]:
    browser = BrowserWorker(
        WorkerContext(bus, SUBJECTS, Status(Role.BROWSER, WorkerId("browser-1"))),
        Config(bus_config=CONFIG, env_config=EnvConfig(server_size=num_slots)),
        browser=SimulatedBrowser(SIMULATION),
        suites={"simulated": SimulatedSuite()},
    )
    policy = PolicyWorker(
        WorkerContext(bus, SUBJECTS, Status(Role.POLICY, WorkerId("policy-1"))),
        Config(bus_config=CONFIG, policy_config=PolicyConfig(max_num_seqs=max_num_seqs)),
        engine=SimulatedEngine(SIMULATION),
        sources=local_weights(bus, SUBJECTS),
    )
    async with anyio.create_task_group() as group:
        group.start_soon(policy.run)
        group.start_soon(browser.run)
        yield
        group.cancel_scope.cancel()


@pytest.mark.parametrize(("many", "few"), [(Split.TRAIN, Split.EVAL), (Split.EVAL, Split.TRAIN)])
@pytest.mark.parametrize(("num_slots", "max_num_seqs"), [(1, 4), (4, 4), (16, 1)])
async def test_a_few_episodes_end_while_most_of_the_many_are_queued(
    many: Split, few: Split, num_slots: int, max_num_seqs: int, tmp_path: Path
) -> None:
    async with nats_server(tmp_path, [replace(CONFIG)]) as address, connect(address, SUBJECTS, CONFIG, name="test") as bus:
        await create_topology(bus, streams(SUBJECTS, CONFIG), shared_queues(SUBJECTS, CONFIG, ()))
        admitter = Admitter(bus, SUBJECTS)
        for queued in tasks(many, NUM_MANY):
            await admitter.admit(queued)
        ended = {Split.TRAIN: 0, Split.EVAL: 0}
        async with (
            bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory")) as trajectories,
            workers(bus, num_slots=num_slots, max_num_seqs=max_num_seqs),
        ):
            while ended[few] < NUM_FEW:
                message = (await anext(trajectories)).message
                assert isinstance(message, Trajectory)
                assert message.outcome.finished, message.error
                ended[message.task.split] += 1
                if ended[many] == NUM_BEFORE and not ended[few]:
                    for late in tasks(few, NUM_FEW):
                        await admitter.admit(late)
    assert ended[many] < NUM_MANY // 2
