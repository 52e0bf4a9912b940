"""`millrace run`: a run of simulated browsers from nothing to its end in one command, and on from where it was killed."""

import json
import socket
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest
from structlog.testing import capture_logs

from bus.server import server_process
from ops.config.loading import load_config
from ops.machine.machine import run_here
from ops.processes import local_roles
from ops.processes.role_process import millrace_command, millrace_environment
from ops.processes.supervisor import RoleSpec
from ops.run.folder import RunFolder
from ops.simulation.material import ensure_task_file
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Role
from tests.deadlines import HANGS_S
from tests.support.polling import until

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
_BATCH = 20


def arguments(folder: Path) -> list[str]:
    settings = {
        "env_config.train_tasks": ensure_task_file(folder.parent / "train.jsonl", num_tasks=40),
        "env_config.test_tasks": ensure_task_file(folder.parent / "test.jsonl", num_tasks=5),
        "env_config.train_tasks_rollout_size": _BATCH,
        "env_config.server_size": 8,
        "feeder_config.num_iterations": 1_000_000,  # until it is killed, told to leave, or given another number
        "feeder_config.max_staleness": 1,
        "feeder_config.evaluate_last": "true",
        "feeder_config.lease_s": 2,
        "simulation_config.mean_steps": 2,
        **{f"bus_config.{queue}_ack_wait_s": 2 for queue in ("task", "step", "judge")},
    }
    return ["run", "simulation", "--run-dir", str(folder), *(f"{key}={value}" for key, value in settings.items())]


async def ended(*given: str) -> str:
    """What it printed."""
    with anyio.fail_after(HANGS_S):
        done = await anyio.run_process(millrace_command(given), env=millrace_environment(), check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


async def test_a_run_in_one_command_and_on_from_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = millrace_command([*arguments(folder), "--browsers", "2", "--archive"])
    log = folder / "logs" / "trainer-1.log"
    with (tmp_path / "first.out").open("wb") as output, anyio.fail_after(HANGS_S):
        process = await anyio.open_process(command, env=millrace_environment(), stdout=output, stderr=output)
        try:
            while not (log.exists() and "version_published" in log.read_text()):
                assert process.returncode is None, (tmp_path / "first.out").read_text()
                await anyio.sleep(0.1)
            below = psutil.Process(process.pid).children(recursive=True)
        finally:
            process.kill()
            await process.wait()
    _, alive = await anyio.to_thread.run_sync(psutil.wait_procs, below, HANGS_S)
    assert not alive
    # It may have published one more than its log says, and admitted the two iterations that follow.
    num_iterations = log.read_text().count("version_published") + 3
    said = await ended("run", "--run-dir", str(folder), f"feeder_config.num_iterations={num_iterations}")
    assert f"done: {folder}" in said
    assert f"{num_iterations * _BATCH} of {num_iterations * _BATCH}" in said or "training episodes 100 %" in said
    assert "every admitted task has one trajectory and one judgement" in await ended("audit", str(folder))
    assert (folder / "logs" / "browser-2.log").exists()


@pytest.mark.parametrize(
    ("description", "said"),
    [
        (None, "policy_config.base_model is '{folder}': write the path of a model folder"),
        ('{"model_type": "llava"}', "a model of type 'llava' cannot be trained here: policy_config.base_model must be one of"),
        ("{", "config.json cannot be read as a model's configuration"),
    ],
)
async def test_a_model_that_cannot_be_had_or_trained_is_said_before_there_is_a_run(
    tmp_path: Path, description: str | None, said: str
) -> None:
    if description is not None:
        (tmp_path / "config.json").write_text(description)
    given = [*arguments(tmp_path / "run"), "policy_config.engine=vllm", f"policy_config.base_model={tmp_path}"]
    with anyio.fail_after(HANGS_S):
        done = await anyio.run_process(millrace_command(given), env=millrace_environment(), check=False)
    assert done.returncode == 78
    assert said.format(folder=tmp_path) in done.stderr.decode()
    assert not (tmp_path / "run").exists()


async def test_so_is_a_reference_that_cannot_be_had(tmp_path: Path) -> None:
    for folder, kind in (("policy", "qwen3_vl"), ("reference", "llava")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(json.dumps({"model_type": kind}))
    for named, said in (
        ("mistyped", "objective_config.reference_model is '{folder}/mistyped': write the path of a model folder"),
        ("reference", "a model of type 'llava' cannot be trained here"),
    ):
        given = [*arguments(tmp_path / "run"), "objective=grpo", "objective_config.kl_loss_coef=0.1"]
        given += [f"policy_config.base_model={tmp_path}/policy", f"objective_config.reference_model={tmp_path}/{named}"]
        with anyio.fail_after(HANGS_S):
            done = await anyio.run_process(
                millrace_command([*given, "policy_config.engine=vllm"]), env=millrace_environment(), check=False
            )
        assert done.returncode == 78
        assert said.format(folder=tmp_path) in done.stderr.decode()
        assert not (tmp_path / "run").exists()


async def test_a_second_run_in_a_folder_is_refused_before_anything_of_it_starts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    endless = arguments(folder)
    command = millrace_command(endless)
    with (tmp_path / "first.out").open("wb") as output, anyio.fail_after(HANGS_S):
        first = await anyio.open_process(command, env=millrace_environment(), stdout=output, stderr=output)
        try:
            while not (folder / "logs" / "feeder-1.log").exists():
                assert first.returncode is None, (tmp_path / "first.out").read_text()
                await anyio.sleep(0.1)
            for again in (endless, ["run", "--run-dir", str(folder)]):
                refused = await anyio.run_process(millrace_command(again), env=millrace_environment(), check=False)
                assert refused.returncode == 78
                said = f"millrace: {folder} is in use: process {first.pid} on {socket.gethostname()} keeps its roles running"
                assert refused.stderr.decode().startswith(said)
            first.terminate()
            assert await first.wait() == 0, (tmp_path / "first.out").read_text()
        finally:
            with suppress(ProcessLookupError):
                first.kill()
    for log in (folder / "logs").glob("*-1.log"):
        assert log.read_text().count('"event": "joined"') <= 1, log.name


def created(path: Path) -> tuple[RunFolder, Config]:
    folder = RunFolder(path)
    config = load_config("simulation", [f"save_path={path}", f"data_path={path}"])
    folder.create(config, needed_bytes=0)
    return folder, config


async def test_a_run_waits_for_what_its_trainer_writes_behind_the_last_version(tmp_path: Path) -> None:
    folder, config = created(tmp_path / "run")
    ended, written = tmp_path / "ended", tmp_path / "written"
    scripts = {
        Role.FEEDER: "pass",
        Role.TRAINER: f"""
import pathlib, time
while not pathlib.Path({str(ended)!r}).exists():
    time.sleep(0.1)
pathlib.Path({str(written)!r}).touch()""",
        Role.BROWSER: "import time; time.sleep(100_000)",
    }
    specs = [
        RoleSpec(role=role, name=f"{role.value}-1", argv=(sys.executable, "-c", script)) for role, script in scripts.items()
    ]
    with capture_logs() as logs, anyio.fail_after(HANGS_S):

        async def feeder_is_over() -> bool:
            return ("role_finished", "feeder-1") in {(log["event"], log.get("role_name")) for log in logs}

        async with anyio.create_task_group() as group:
            group.start_soon(run_here, folder, config, specs)
            await until(feeder_is_over)
            ended.touch()
    assert written.exists()


async def test_a_server_that_somebody_else_runs_is_not_taken_for_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_roles, "_ENDING_S", 0.0)
    folder, config = created(tmp_path / "run")
    async with (
        server_process(folder.server, [config.bus_config], lasting=True),
        local_roles.local_roles(folder) as roles,
    ):
        with pytest.raises(ConfigurationError, match=f"another process runs the server of {folder.path}"):
            await roles.serve(config)
        assert roles.supervisor.statuses == ()


async def test_a_server_that_a_killed_run_left_behind_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_roles, "_ENDING_S", HANGS_S)
    folder, config = created(tmp_path / "run")
    with capture_logs() as logs, anyio.fail_after(HANGS_S):

        async def is_said() -> bool:
            return "server_awaited" in {log["event"] for log in logs}

        async with (
            local_roles.local_roles(folder) as roles,
            anyio.create_task_group() as group,
            server_process(folder.server, [config.bus_config], lasting=True),
        ):
            group.start_soon(roles.serve, config)
            await until(is_said)
