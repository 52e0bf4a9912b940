"""`millrace judge` as a process: its key comes from the environment; what only a person can mend ends it with a sentence."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process

from bus.jetstream import JetStreamBus, connect, create_topology
from bus.server import nats_server
from bus.topology import shared_queues, streams, trajectory_queue
from ops.processes.local_roles import local_roles
from ops.processes.role_process import millrace_environment
from ops.run.folder import RunFolder
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Role, Verdict
from tests.deadlines import HANGS_S
from tests.integration.test_openai_config import of_file
from tests.support.judging.asked_judge import SUBJECTS, answered, for_test, hoped_for, judgements, question
from tests.support.judging.endpoint_replies import Reply, failed
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.scripted_endpoint import scripted_endpoint
from tests.support.runs.leaving_role import role_command

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
KEY = "sk-open-sesame"
NO_KEY = "GEMINI_API_KEY is not set: put the key for https://generativelanguage.googleapis.com/v1beta/openai/ there"


@asynccontextmanager
async def run_of(config: Config, path: Path) -> AsyncIterator[tuple[RunFolder, JetStreamBus]]:
    """A run's folder with its server up, and the administrator's bus."""
    config = for_test(config)
    folder, bus_config = RunFolder(path), config.bus_config
    folder.create(config, needed_bytes=0)
    async with nats_server(folder.server, [bus_config]) as address, connect(address, SUBJECTS, bus_config, name="test") as bus:
        await create_topology(bus, streams(SUBJECTS, bus_config), shared_queues(SUBJECTS, bus_config, bus_config.rubrics))
        yield folder, bus


@asynccontextmanager
async def judge_process(folder: RunFolder, **environment: str) -> AsyncIterator[Process]:
    command = role_command("judge", "--run-dir", str(folder.path), "--name", "judge-1")
    without = {name: value for name, value in millrace_environment().items() if not name.endswith("_API_KEY")}
    async with await anyio.open_process(command, stderr=subprocess.PIPE, env={**without, **environment}) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


async def ended(process: Process) -> tuple[int, str]:
    """Exit code and what it said."""
    assert process.stderr is not None
    with anyio.fail_after(HANGS_S):
        said = b"".join([chunk async for chunk in process.stderr])
        return await process.wait(), said.decode()


def everything_written(folder: RunFolder) -> bytes:
    return b"".join(file.read_bytes() for file in folder.path.rglob("*") if file.is_file())


async def test_the_key_is_taken_from_the_environment_and_written_nowhere(tmp_path: Path) -> None:
    keys = set[str]()

    def script(asked: Asked) -> Reply:
        keys.add(asked.key)
        return hoped_for(asked)

    async with scripted_endpoint(script) as endpoint:
        named = (
            "openai_config.model=m",
            f"openai_config.base_url={endpoint.base_url}",
            "openai_config.openai_api_key_env_var=MY_KEY",
        )
        async with run_of(of_file(tmp_path, "", *named), tmp_path / "run") as (folder, bus):
            await answered(bus, question("t1"))
            async with judge_process(folder, MY_KEY=KEY) as process:
                judgement = (await judgements(bus, 1))["t1"]
                process.send_signal(signal.SIGTERM)
                assert (await ended(process))[0] == 0
        written = everything_written(folder)
    assert (judgement.verdict, judgement.reward, judgement.judge) == (Verdict.SUCCESS, 1.0, "judge-1")
    assert keys == {KEY}
    assert b"judge-1" in written
    assert KEY.encode() not in written


async def test_without_a_key_it_ends_before_it_takes_anything(tmp_path: Path) -> None:
    async with run_of(of_file(tmp_path, ""), tmp_path / "run") as (folder, bus):
        await answered(bus, question("t1"))
        async with judge_process(folder) as process:
            code, said = await ended(process)
        assert code == 78
        assert f"millrace: {NO_KEY}" in said
        async with bus.work(
            trajectory_queue(SUBJECTS, for_test(of_file(tmp_path, "")).bus_config, "rubric_v1"), prefetch=0
        ) as inbox:
            with anyio.fail_after(HANGS_S):
                assert (await anext(aiter(inbox))).num_delivered == 1


async def test_a_key_that_is_refused_ends_it_and_loses_nothing(tmp_path: Path) -> None:
    accepts = False

    def script(asked: Asked) -> Reply:
        return hoped_for(asked) if accepts else failed(401, message=f"the key {asked.key} is not known")

    async with scripted_endpoint(script) as endpoint:
        named = (
            "bus_config.judge_ack_wait_s=36000",
            "openai_config.model=m",
            f"openai_config.base_url={endpoint.base_url}",
            "openai_config.openai_api_key_env_var=MY_KEY",
        )
        async with run_of(of_file(tmp_path, "", *named), tmp_path / "run") as (folder, bus):
            await answered(bus, question("t1"))
            async with judge_process(folder, MY_KEY=KEY) as process:
                code, said = await ended(process)
            assert code == 78
            assert "refuses the request: 401; check the key in MY_KEY" in said
            assert KEY not in said
            accepts = True
            async with judge_process(folder, MY_KEY=KEY):
                # Handed back, not waited for: nothing else brings it within hours.
                judgement = (await judgements(bus, 1, within_s=HANGS_S))["t1"]
    assert judgement.verdict is Verdict.SUCCESS


async def test_a_supervised_judge_has_the_environment_and_its_sentence_reaches_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    async with scripted_endpoint(hoped_for) as endpoint:
        config = of_file(
            tmp_path, "", f"openai_config.base_url={endpoint.base_url}", "openai_config.openai_api_key_env_var=MY_KEY"
        )
        async with run_of(config, tmp_path / "run") as (folder, bus):
            monkeypatch.setenv("MY_KEY", KEY)
            await answered(bus, question("t1"))
            async with local_roles(folder) as roles:
                roles.start(Role.JUDGE)
                judgement = (await judgements(bus, 1))["t1"]
            assert judgement.verdict is Verdict.SUCCESS
            assert {request.key for request in endpoint.requests} == {KEY}
            other = replace(for_test(of_file(tmp_path, "")), save_path=config.save_path)
            folder.create(other, needed_bytes=0)
            async with local_roles(folder) as roles:
                roles.start(Role.JUDGE)
                with anyio.fail_after(HANGS_S), pytest.raises(ConfigurationError, match=f"judge-1 cannot run: {NO_KEY}"):
                    await roles.finished(Role.JUDGE)
