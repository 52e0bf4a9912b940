"""An answer that no message holds: the episode ends at once, as data, with the reason."""

from dataclasses import replace

import anyio
import msgspec
import pytest

from agents.engine import Generation, GenerationRequest
from agents.worker import PolicyWorker
from browser_workers.worker import BrowserWorker
from bus import chain
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from ops.simulation.browser import SimulatedBrowser, SimulatedSuite
from ops.simulation.engine import SimulatedEngine
from schemas.browser_config import BrowserConfig
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.ids import WorkerId
from schemas.messages import Outcome, Role, Trajectory
from schemas.policy_config import PolicyConfig
from schemas.simulation_config import SimulationConfig
from tests.builders import RUN, task
from tests.contract.backends import SUBJECTS
from tests.support.bus.local_weights import local_weights

pytestmark = [pytest.mark.anyio]
CONFIG = BusConfig(run=RUN, max_payload_bytes=100_000)
SIMULATION = SimulationConfig(screenshot_kb=1.0, policy_latency_ms=0.0, step_latency_ms=0.0)
NAME = WorkerId("worker-1")


class VerboseEngine(SimulatedEngine):
    """Says more than a message holds."""

    num_generated = 0

    async def generate(self, request: GenerationRequest) -> Generation:
        self.num_generated += 1
        return replace(await super().generate(request), text="because " * 20_000)


async def test_an_answer_that_is_too_large_ends_its_episode_at_once() -> None:
    bus, engine = MemoryBus(SUBJECTS, CONFIG), VerboseEngine(SIMULATION)
    browser = BrowserWorker(
        WorkerContext(bus, SUBJECTS, Status(Role.BROWSER, NAME)),
        Config(bus_config=CONFIG, env_config=EnvConfig(server_size=1), browser_config=BrowserConfig(resend_s=0.1)),
        browser=SimulatedBrowser(SIMULATION),
        suites={"simulated": SimulatedSuite()},
    )
    policy = PolicyWorker(
        WorkerContext(bus, SUBJECTS, Status(Role.POLICY, NAME)),
        Config(bus_config=CONFIG, policy_config=PolicyConfig(max_num_seqs=1)),
        engine=engine,
        sources=local_weights(bus, SUBJECTS),
    )
    of = msgspec.structs.replace(task(), website="simulated:page?task=1", timeout_s=3600.0)
    await chain.admit(bus, SUBJECTS, of)
    await bus.append(SUBJECTS.tasks, SUBJECTS.task(of.split, of.episode), of)
    async with anyio.create_task_group() as group:
        group.start_soon(policy.run)
        group.start_soon(browser.run)
        async with bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory")) as trajectories:
            ended = (await anext(trajectories)).message
        group.cancel_scope.cancel()
    assert isinstance(ended, Trajectory)
    assert (ended.outcome, ended.num_observations, ended.num_steps) == (Outcome.FAILED, 1, 0)
    assert "exceed" in ended.error
    assert engine.num_generated == 1
    assert not await bus.subjects(SUBJECTS.advisories, SUBJECTS.everything("dead"))
