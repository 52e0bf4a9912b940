"""`millrace watch` as it is used: in pipes, to the end or for ever, stopped by whoever has seen enough."""

import json
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from msgspec.structs import replace

from bus.jetstream import JetStreamBus
from ops.processes.role_process import millrace_command, millrace_environment
from schemas.messages import JudgeCall, Outcome, Split
from tests.builders import task
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.played import judge, play
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
T = TypeVar("T")


@pytest.fixture
async def bus(tmp_path: Path, anyio_backend: str) -> AsyncIterator[JetStreamBus]:
    async with running_run(tmp_path) as bus:
        await judge(bus, await play(bus, task("a"), num_steps=2, outcome=Outcome.ANSWERED), 1.0)
        await judge(bus, await play(bus, task("b"), outcome=Outcome.STEP_LIMIT), 0.0)
        await judge(bus, await play(bus, task("c", split=Split.EVAL), outcome=Outcome.ANSWERED), 0.25)
        yield bus


def command(run_dir: Path, *arguments: str) -> tuple[str, ...]:
    return millrace_command(["watch", *arguments, "--run-dir", str(run_dir)])


async def in_thread(function: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(function)


async def watch(run_dir: Path, *arguments: str) -> list[dict[str, Any]]:
    done = await in_thread(
        lambda: subprocess.run(
            command(run_dir, *arguments), env=millrace_environment(), capture_output=True, check=False, timeout=HANGS_S
        )
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


async def test_every_line_is_a_record(bus: JetStreamBus, tmp_path: Path) -> None:
    lines = await watch(tmp_path, "--no-follow")
    assert [line["seq"] for line in lines] == [1, 2, 3]
    first = lines[0]
    assert (first["stream"], first["subject"]) == ("test_TRAJECTORIES", "test.trajectory.train.train-r0000-a-m0")
    assert (first["message"]["type"], first["message"]["outcome"]) == ("trajectory/1", "answered")
    assert first["time"].startswith("20")


async def test_records_are_chosen(bus: JetStreamBus, tmp_path: Path) -> None:
    async def seen(*arguments: str) -> list[int]:
        return [line["seq"] for line in await watch(tmp_path, *arguments, "--no-follow")]

    assert await seen("judgements", "--min-reward", "0.2", "--split", "train") == [1]
    assert await seen("judgements", "--from", "1", "--outcome", "answered", "--website", "demo:*", "--version", "0-4") == [3]
    assert await seen("trajectories", "--durable", "mine") == [1, 2, 3]
    assert await seen("trajectories", "--durable", "mine") == []


async def test_what_judges_models_answered(bus: JetStreamBus, tmp_path: Path) -> None:
    asked = JudgeCall(
        episode=task("a").episode, rubric="rubric_v1", stage="blocking", question="d1", answer=0, model="m", text="{}",
        accepted=True,
    )  # fmt: skip
    for call in (asked, replace(asked, stage="criterion_b", question="d2", text="not json", accepted=False)):
        await bus.append(SUBJECTS.calls, SUBJECTS.call(call.rubric, call.episode, call.question, call.answer), call)
    [line] = await watch(tmp_path, "calls", "--no-follow", "--stage", "criterion_b", "--rubric", "rubric_v1")
    assert (line["message"]["text"], line["message"].get("accepted")) == ("not json", False)
    assert line["subject"] == f"test.call.rubric_v1.{asked.episode}.d2.0"


async def test_screenshots_become_files_and_never_text(bus: JetStreamBus, tmp_path: Path) -> None:
    folder = tmp_path / "screenshots"
    [line, *_] = await watch(tmp_path, "judgements", "--no-follow", "--screenshots", str(folder))
    assert line["screenshots"] == [str(folder / "train-r0000-a-m0" / f"1-{step}.jpg") for step in range(2)]
    assert [await anyio.Path(path).read_bytes() for path in line["screenshots"]] == [b"screenshot 0", b"screenshot 1"]
    [seen, *_] = await watch(tmp_path, "observations", "--no-follow")
    assert seen["message"]["screenshot"]["data"] == {"num_bytes": 12}
    assert "screenshots" not in seen


@asynccontextmanager
async def following(run_dir: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A watch that has printed what there is and waits for more."""
    process = await in_thread(
        lambda: subprocess.Popen(
            command(run_dir, "trajectories", "--from", "2"),
            env=millrace_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    )
    with process:
        assert process.stdout is not None
        assert json.loads(await in_thread(process.stdout.readline))["seq"] == 3
        yield process


async def test_a_reader_that_leaves_ends_it_quietly(bus: JetStreamBus, tmp_path: Path) -> None:
    async with following(tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # nothing more is stored: it has to notice by itself
        assert await in_thread(lambda: process.wait(HANGS_S)) == 0
        assert process.stderr.read() == b""


async def test_ctrl_c_is_130(bus: JetStreamBus, tmp_path: Path) -> None:
    async with following(tmp_path) as process:
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        assert await in_thread(lambda: process.wait(HANGS_S)) == 130
        assert process.stderr.read() == b""


async def test_a_run_that_has_ended_is_read_too(tmp_path: Path) -> None:
    async with running_run(tmp_path) as bus:
        await play(bus, task("a"))
    assert [line["seq"] for line in await watch(tmp_path, "--no-follow")] == [1]
    followed = await in_thread(
        lambda: subprocess.run(
            command(tmp_path), env=millrace_environment(), capture_output=True, text=True, check=False, timeout=HANGS_S
        )
    )
    assert (followed.returncode, followed.stdout) == (78, "")
    assert "read what it has stored: add --no-follow" in followed.stderr
