"""Workers drained and restarted in the midst of a run, around simulated engines: nothing is lost, repeated or cut short."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from bus.jetstream import JetStreamBus
from bus.jetstream.link import open_link
from bus.subjects import Subjects
from ops.audit.audit import audit
from ops.config.loading import load_config
from ops.processes.local_roles import LocalRoles, local_roles
from ops.processes.role_process import millrace_command, millrace_environment
from ops.processes.supervisor import RoleState
from ops.run.folder import RunFolder
from ops.run.joining import address_for, join, subjects_of
from ops.simulation.material import ensure_task_file
from schemas.config import Config
from schemas.errors import NotPermitted
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Judgement, Outcome, Role
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
_NUM_TASKS, _BATCH = 100, 20
_CREW = {Role.BROWSER: 2, Role.POLICY: 1, Role.JUDGE: 1}
_SLOW = (
    "simulation_config.step_latency_ms=300",
    "simulation_config.policy_latency_ms=200",
    "env_config.server_size=8",
    "feeder_config.mode=rollout",
    "feeder_config.num_iterations=10000",  # until the test says that it is enough
    "feeder_config.max_concurrent=40",
    f"env_config.train_tasks_rollout_size={_BATCH}",
    # A worker that stands still for longer loses its episode, rightly; here only one that leaves may.
    *(f"bus_config.{lease}_ack_wait_s=60" for lease in ("task", "step", "judge")),
    "bus_config.heartbeats_max_age_s=900",  # who stands still is not gone
)


@dataclass
class Run:
    folder: RunFolder
    config: Config
    roles: LocalRoles
    admin: JetStreamBus

    @property
    def subjects(self) -> Subjects:
        return subjects_of(self.config)

    async def judged(self) -> list[Judgement]:
        records = await self.admin.history(self.subjects.judged, self.subjects.judgements(None))
        return [record.message for record in records if isinstance(record.message, Judgement)]

    async def wait_judged(self, *workers: str) -> None:
        """Returns when an episode of each of these browser workers is judged."""
        awaited = set(workers)
        async with self.admin.tail(self.subjects.judged, self.subjects.judgements(None)) as records:
            while awaited:
                judgement = (await anext(records)).message
                assert isinstance(judgement, Judgement)
                awaited.discard(judgement.trajectory.worker)

    async def wait_for_work(self, name: str) -> None:
        """Returns when a heartbeat says that the worker waits for work."""
        async with self.admin.tail(self.subjects.heartbeats, self.subjects.everything("heartbeat")) as beats:
            async for record in beats:
                beat = record.message
                if isinstance(beat, Heartbeat) and (beat.worker, beat.state) == (name, "waiting"):
                    return

    async def play_to_its_end(self) -> int:
        """Has the run end at the first iteration that all it has admitted fits into; returns how many episodes it has then."""
        await self.roles.stop(Role.FEEDER)
        names, admitted = self.subjects, 0
        for shard in range(names.num_shards):
            admitted += len(await self.admin.subjects(names.episodes(shard), names.chains(shard, "task")))
        # A feeder may have intended a batch that it did not come to admit.
        num_iterations = admitted // _BATCH + 2
        feeding = replace(self.config.feeder_config, num_iterations=num_iterations)
        self.config = replace(self.config, feeder_config=feeding)
        self.folder.store(self.config)
        self.roles.start(Role.FEEDER)
        await self.roles.finished(Role.FEEDER)
        return num_iterations * _BATCH

    async def command(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, output and errors of a `millrace` command in a process of its own."""
        argv = millrace_command((*arguments, "--run-dir", str(self.folder.path)))
        done = await anyio.run_process(argv, check=False, env=millrace_environment(), cwd="/")
        return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    folder = RunFolder(tmp_path / "run")
    paths = [f"save_path={folder.path}", f"data_path={folder.path}"]
    config = load_config("simulation", [*paths, *_SLOW])
    folder.create(config, needed_bytes=0)
    ensure_task_file(folder.tasks / "train.jsonl", num_tasks=_NUM_TASKS)
    async with local_roles(folder) as roles:
        await roles.serve(config)
        async with join(folder, config, role="admin", name="test") as admin:
            yield Run(folder, config, roles, admin)


async def test_a_drained_worker_finishes_and_a_rolling_restart_loses_nothing(run: Run) -> None:
    with anyio.fail_after(HANGS_S):
        run.roles.start(Role.FEEDER)
        for role, count in _CREW.items():
            run.roles.start(role, count=count)
        await run.wait_judged("browser-1", "browser-2")
        code, told, complaint = await run.command("drain", "browser-2")
        assert (code, complaint) == (0, "")
        assert told.splitlines()[-1] == "browser-2 has left"
        left = await run.roles.supervisor.wait("browser-2")
        assert (left.state, left.exit_code) == (RoleState.FINISHED, 0)
        code, told, complaint = await run.command("restart", "--role", "browser", "--role", "policy", "--role", "judge")
        assert (code, complaint) == (0, "")
        num_episodes = await run.play_to_its_end()
        judgements = await run.judged()
        found = await audit(run.admin, run.config)
    back = [line for line in told.splitlines() if "is back" in line]
    assert back == ["browser-1 is back (1 of 3)", "policy-1 is back (2 of 3)", "judge-1 is back (3 of 3)"]
    assert not any(status.num_restarts for status in run.roles.supervisor.statuses), "none of them crashed"
    assert found.holds
    assert len(judgements) == num_episodes
    assert {judgement.trajectory.attempt for judgement in judgements} == {1}
    assert {judgement.trajectory.outcome for judgement in judgements} <= {Outcome.DONE, Outcome.STEP_LIMIT}
    assert {judgement.trajectory.worker for judgement in judgements} == {"browser-1", "browser-2"}


async def test_a_worker_is_found_and_told_as_a_micro_service(run: Run) -> None:
    subject = run.subjects.control(Role.JUDGE, WorkerId("judge-1"))
    with anyio.fail_after(HANGS_S):
        run.roles.start(Role.JUDGE)
        await run.wait_for_work("judge-1")
        async with open_link(address_for(run.folder, run.config.bus_config, "monitor"), "monitor") as link:
            pinged = json.loads((await link.request("$SRV.PING.millrace-judge", timeout_s=HANGS_S)).data)
            told = json.loads((await link.request(f"$SRV.INFO.millrace-judge.{pinged['id']}", timeout_s=HANGS_S)).data)
            stats = json.loads((await link.request("$SRV.STATS", timeout_s=HANGS_S)).data)
            with pytest.raises(NotPermitted):
                await link.request(subject, b"drain", timeout_s=HANGS_S)
        async with open_link(address_for(run.folder, run.config.bus_config, "admin"), "admin") as link:
            refused = await link.request(subject, b"dance", timeout_s=HANGS_S)
        unknown = await run.command("drain", "judge-2")
    assert pinged["type"] == "io.nats.micro.v1.ping_response"
    described = {name: pinged["metadata"][name] for name in ("run", "role", "worker")}
    assert described == {"run": run.subjects.run, "role": "judge", "worker": "judge-1"}
    assert [(one["name"], one["subject"]) for one in told["endpoints"]] == [("control", subject)]
    (endpoint,) = stats["endpoints"]
    assert (endpoint["data"]["worker"], endpoint["data"]["state"]) == ("judge-1", "waiting")
    assert refused.headers == {"Nats-Service-Error": "write one of status, drain, restart", "Nats-Service-Error-Code": "400"}
    assert unknown == (78, "", "millrace: there is no worker judge-2: there are judge-1\n")
