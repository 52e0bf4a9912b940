"""A planted mistake in a suite, an engine and a judge of the user's own, on a real server with the keys of the roles: one item
of each ends by name, everything else is served; a worker that meets the same at everything ends and says what."""

import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
import structlog
from anyio.abc import Process

from agents.engine import Generation, GenerationRequest
from browser_workers.browser import Opening
from bus import chain
from bus.background import background
from bus.chain import publish_trajectory
from bus.fault import MOST_IN_A_ROW
from bus.jetstream import JetStreamBus, connect, create_topology
from bus.server import nats_server
from bus.topology import shared_queues, streams
from ops.config.loading import load_config
from ops.monitor.watch import MonitorWatch, monitoring
from ops.processes.role_process import millrace_command, millrace_environment
from ops.roles.running import run_role
from ops.run.folder import RunFolder
from ops.run.joining import join
from ops.simulation.browser import SimulatedSuite
from ops.simulation.engine import SimulatedEngine
from schemas.ids import WorkerId
from schemas.messages import Fault, Judgement, Outcome, Role, Task, Trajectory, Verdict
from tests import builders
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
OWN_JUDGE = """
from judges.episode import JudgedEpisode
from judges.named import judge


@judge("own_v1")
def own(episode: JudgedEpisode) -> bool:
    if episode.trajectory.task.task.startswith("hated_by_judge"):
        raise KeyError("price")
    return True
"""
NAMES = ("hated_by_suite", "hated_by_engine", "hated_by_judge", *(f"good{number}" for number in range(9)))


@asynccontextmanager
async def run_at(path: Path) -> AsyncIterator[tuple[RunFolder, JetStreamBus]]:
    """A run with a judge of its user's own, its server up, and the administrator's bus."""
    module = path / "own_judge.py"
    module.write_text(OWN_JUDGE)
    overrides = [
        f"bus_config.run={SUBJECTS.run}",
        # What is handed out once comes again when it failed, and not because this process had no turn.
        "bus_config.task_ack_wait_s=900",
        "bus_config.step_ack_wait_s=900",
        "bus_config.rubrics=[own_v1]",
        f"judge_config.judge='{module}:own_v1'",
        "judge_config.max_attempts=2",
        "browser_config.engine=simulated",
        "policy_config.engine=simulated",
        "simulation_config.failure_share=0.0",
        "env_config.server_size=4",
    ]
    folder, config = RunFolder(path / "run"), load_config("default", overrides)
    folder.create(config, needed_bytes=0)
    bus_config = config.bus_config
    async with nats_server(folder.server, [bus_config]) as address, connect(address, SUBJECTS, bus_config, name="test") as bus:
        await create_topology(bus, streams(SUBJECTS, bus_config), shared_queues(SUBJECTS, bus_config, bus_config.rubrics))
        yield folder, bus


def simulated(name: str) -> Task:
    return msgspec.structs.replace(builders.task(name), website=f"simulated:page?task={name}")


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mistakes in a suite and in an engine."""
    resolve, generate = SimulatedSuite.resolve, SimulatedEngine.generate

    def resolve_or_raise(self: SimulatedSuite, page: str, query: str) -> Opening:
        if "hated_by_suite" in query:
            raise TypeError("no lamps")
        return resolve(self, page, query)

    async def generate_or_raise(self: SimulatedEngine, request: GenerationRequest) -> Generation:
        if "hated_by_engine" in request.observation.episode:
            raise IndexError("screenshot 3")
        return await generate(self, request)

    monkeypatch.setattr(SimulatedSuite, "resolve", resolve_or_raise)
    monkeypatch.setattr(SimulatedEngine, "generate", generate_or_raise)


async def judgements(bus: JetStreamBus, count: int) -> dict[str, Judgement]:
    """By task, once there are so many."""
    found: dict[str, Judgement] = {}
    async with bus.tail(SUBJECTS.judged, SUBJECTS.judgements(None)) as records:
        while len(found) < count:
            message = (await anext(records)).message
            assert isinstance(message, Judgement)
            found[message.trajectory.task.task] = message
    return found


async def faults(bus: JetStreamBus, count: int) -> list[Fault]:
    found: list[Fault] = []
    async with bus.tail(SUBJECTS.advisories, SUBJECTS.everything("fault")) as records:
        while len(found) < count:
            message = (await anext(records)).message
            assert isinstance(message, Fault)
            found.append(message)
    return found


def told(met: Sequence[Fault], role: Role) -> list[tuple[str, str, int]]:
    return [(fault.item, fault.error, fault.number) for fault in met if fault.role is role]


async def test_one_item_of_each_ends_by_name_and_everything_else_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with structlog.testing.capture_logs() as logs:
        async with run_at(tmp_path) as (folder, bus):
            config = folder.load()
            roles = (Role.BROWSER, Role.POLICY, Role.JUDGE)
            workers = [partial(run_role, role, folder.path, config, WorkerId(f"{role.value}-1")) for role in roles]
            for name in NAMES:
                task = simulated(name)
                await chain.admit(bus, SUBJECTS, task)
                await bus.append(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), task)
            with anyio.fail_after(HANGS_S):
                async with (
                    join(folder, config, role="monitor", name="monitor") as reading,
                    monitoring(reading, SUBJECTS, config) as watch,
                    background(*[partial(serve, worker) for worker in workers]),
                ):
                    given = await judgements(bus, len(NAMES))
                    met = await faults(bus, 7)
                    await watch.wait_until(lambda state: set(state.surprises) == {"browser-1", "policy-1", "judge-1"})
                    await watch.wait_until(lambda _: "KeyError: 'price' (" in surprises(watch).get("judge-1", ""))
                    await watch.wait_until(
                        lambda state: (
                            {worker.role: worker.metrics.get("unexpected") for worker in state.workers.in_order()}
                            == {Role.BROWSER: 3.0, Role.POLICY: 3.0, Role.JUDGE: 1.0}
                        )
                    )
            letters = await bus.subjects(SUBJECTS.advisories, SUBJECTS.everything("dead"))
    episode = {name: builders.task(name).episode for name in NAMES}
    assert told(met, Role.BROWSER) == [(episode["hated_by_suite"], "TypeError: no lamps", n) for n in (1, 2, 3)]
    assert told(met, Role.POLICY) == [(f"{episode['hated_by_engine']}/1/0", "IndexError: screenshot 3", n) for n in (1, 2, 3)]
    assert told(met, Role.JUDGE) == [(f"train/{episode['hated_by_judge']}", "KeyError: 'price'", 1)]
    by_suite, by_judge = given["hated_by_suite"], given["hated_by_judge"]
    assert by_suite.trajectory.outcome is Outcome.FAILED
    assert "unexpected at 3 tries: TypeError: no lamps" in by_suite.trajectory.error
    assert (by_judge.verdict, by_judge.reward) == (Verdict.ERROR, None)
    assert {given[name].verdict for name in NAMES if name.startswith("good")} == {Verdict.SUCCESS}
    by_engine = given["hated_by_engine"].trajectory
    assert by_engine.outcome is Outcome.FAILED
    assert "the policy cannot answer step 0: unexpected at 3 tries: IndexError: screenshot 3" in by_engine.error
    assert letters == {}  # whoever asked was answered
    assert sum(line["event"] == "unexpected_error" for line in logs) == 7


def surprises(watch: MonitorWatch) -> dict[str, str]:
    """What is said now of errors that nobody foresaw, by worker."""
    held = [alert.condition for alert in watch.conditions_now()]
    return {condition.key.subject: condition.sentence for condition in held if condition.key.kind == "unexpected_error"}


async def serve(worker: Callable[[], Coroutine[Any, Any, int]]) -> None:
    await worker()


async def test_a_judge_that_raises_at_everything_ends_with_a_sentence_and_its_next_ones_leave_nothing_unjudged(
    tmp_path: Path,
) -> None:
    names = [f"hated_by_judge{number}" for number in range(MOST_IN_A_ROW + 1)]
    async with run_at(tmp_path) as (folder, bus):
        for name in names:
            await publish_trajectory(bus, SUBJECTS, of(name))
        code, said = await judged_until_it_ends(folder)
        assert code == 1, said
        assert "WorkerFailing: one item after the other meets KeyError: 'price' (" in said
        assert "this worker ends" in said
        with anyio.fail_after(HANGS_S):
            async with judging(folder):
                given = await judgements(bus, len(names))
    assert {judgement.verdict for judgement in given.values()} == {Verdict.ERROR}


def of(name: str) -> Trajectory:
    return builders.trajectory(simulated(name))


@asynccontextmanager
async def judging(folder: RunFolder) -> AsyncIterator[Process]:
    command = millrace_command(["judge", "--run-dir", str(folder.path), "--name", "judge-1"])
    async with await anyio.open_process(command, stderr=subprocess.PIPE, env=millrace_environment()) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


async def judged_until_it_ends(folder: RunFolder) -> tuple[int, str]:
    """Exit code and what it said."""
    with anyio.fail_after(HANGS_S):
        async with judging(folder) as process:
            assert process.stderr is not None
            said = b"".join([chunk async for chunk in process.stderr])
            return await process.wait(), said.decode()
