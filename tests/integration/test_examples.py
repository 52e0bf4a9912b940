"""The examples do what they say, run as a user runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from bus.context import WorkerContext
from bus.jetstream import JetStreamBus, create_topology
from bus.presence import Status
from bus.topology import shared_queues, streams
from judges.worker import JudgeWorker
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.extensions import JUDGES
from schemas.ids import WorkerId
from schemas.judge_config import JudgeConfig
from schemas.messages import Judgement, Outcome, Role, Split
from tests.builders import task
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.played import judge, play
from tests.support.closed_port import closed_port
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ROOT = Path(__file__).parents[2]


async def run_example(name: str, *arguments: str, isolated: bool = False) -> subprocess.CompletedProcess[str]:
    paths = {"PYTHONPATH": "" if isolated else str(ROOT)}
    return await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            [sys.executable, str(ROOT / "examples" / name), *arguments],
            env={**os.environ, **paths},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGS_S,
        )
    )


async def test_the_custom_consumer_counts_success_and_keeps_failures(tmp_path: Path) -> None:
    async with running_run(tmp_path / "run") as bus:
        await judge(bus, await play(bus, task("solved"), num_steps=2), 1.0)
        failed = await play(bus, task("failed"), num_steps=3)
        await judge(bus, failed, 0.0)
        await judge(bus, await play(bus, task("held-out", split=Split.EVAL)), 0.0)
        arguments = ["--run-dir", str(tmp_path / "run"), "--failures", str(tmp_path / "failures"), "--no-follow"]
        done = await run_example("custom_consumer.py", *arguments, "--durable", "example")
        assert done.returncode == 0, done.stderr
        lines = [line.partition(" ")[2] for line in done.stdout.splitlines()]
        assert lines == ["demo:click_button: 1 of 1 solved", "demo:click_button: 1 of 2 solved"]
        screenshots = {path.name: path.read_bytes() for path in (tmp_path / "failures").iterdir()}
        assert screenshots == {f"{failed.episode}.jpg": b"screenshot 2"}
        again = await run_example("custom_consumer.py", *arguments, "--durable", "example")
        assert (again.returncode, again.stdout) == (0, "")


async def test_any_language_reads_the_streams(tmp_path: Path) -> None:
    async with running_run(tmp_path / "run") as bus:
        first = await play(bus, task("a"), num_steps=2, outcome=Outcome.ANSWERED)
        second = await play(bus, task("b"), num_steps=1, outcome=Outcome.STEP_LIMIT)
        arguments = ["--run-dir", str(tmp_path / "run"), "--screenshots", str(tmp_path / "seen")]
        done = await run_example("foreign_consumer.py", *arguments, isolated=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            f"{first.episode} answered: 2 screenshots",
            f"{second.episode} step_limit: 1 screenshots",
        ]
        seen = {str(path.relative_to(tmp_path / "seen")): path.read_bytes() for path in (tmp_path / "seen").rglob("*.jpg")}
        assert seen == {
            f"{first.episode}/0.jpg": b"screenshot 0",
            f"{first.episode}/1.jpg": b"screenshot 1",
            f"{second.episode}/0.jpg": b"screenshot 0",
        }


async def test_judges_of_ones_own_judge_a_run(tmp_path: Path) -> None:
    async with running_run(tmp_path / "run") as bus:
        for name, reference, answer in [("right", "12", "12 rooms"), ("unsure", "12", "12 or 13"), ("open", None, "12")]:
            asked = msgspec.structs.replace(task(name), reference_answer=reference)
            await play(bus, asked, num_steps=2, outcome=Outcome.ANSWERED, answer=answer)
        await play(bus, task("gone"), outcome=Outcome.FAILED)
        judges = [f"{ROOT / 'examples/own_judge.py'}:{name}" for name in ("one_number_v1", "clean_steps_v1")]
        done = await run_example("try_judges.py", "--run-dir", str(tmp_path / "run"), *judges)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            "train-r0000-right-m0: one_number_v1 success 1.0 | clean_steps_v1 success 1.0",
            "train-r0000-unsure-m0: one_number_v1 failure 0.0 | clean_steps_v1 success 1.0",
            "train-r0000-open-m0: one_number_v1 no verdict (task open has no reference answer) | clean_steps_v1 success 1.0",
        ]
        judged = await judged_by(bus, "one_number_v1", num_episodes=4)
    assert {each.episode.removesuffix("-m0"): (each.verdict.value, each.reward) for each in judged} == {
        "train-r0000-right": ("success", 1.0),
        "train-r0000-unsure": ("failure", 0.0),
        "train-r0000-open": ("error", None),
        "train-r0000-gone": ("excluded", None),
    }


async def judged_by(bus: JetStreamBus, name: str, *, num_episodes: int) -> list[Judgement]:
    """What a worker with the example's judge comes to."""
    config, bus_config = JudgeConfig(judge=name, max_attempts=1), BusConfig(run=SUBJECTS.run, rubrics=(name,))
    await create_topology(bus, streams(SUBJECTS, bus_config), shared_queues(SUBJECTS, bus_config, bus_config.rubrics))
    worker = JudgeWorker(
        WorkerContext(bus, SUBJECTS, Status(Role.JUDGE, WorkerId("judge-1"))),
        Config(bus_config=bus_config, judge_config=config),
        judge=JUDGES.find(f"{ROOT / 'examples/own_judge.py'}:{name}").made,
    )
    async with anyio.create_task_group() as group, bus.tail(SUBJECTS.judged, SUBJECTS.judgements(None)) as records:
        group.start_soon(worker.run)
        with anyio.fail_after(HANGS_S):
            found = [(await anext(records)).message for _ in range(num_episodes)]
        group.cancel_scope.cancel()
    return [each for each in found if isinstance(each, Judgement)]


async def test_a_run_that_has_ended_is_read_or_told_of_in_a_sentence(tmp_path: Path) -> None:
    async with running_run(tmp_path / "run") as bus:
        await judge(bus, await play(bus, task("a"), num_steps=1, outcome=Outcome.ANSWERED, answer="12"), 1.0)
    where = ["--run-dir", str(tmp_path / "run")]
    done = await run_example("custom_consumer.py", *where, "--failures", str(tmp_path / "failures"))
    # Another server of this machine may listen on the run's port by now.
    said = [line for line in done.stderr.splitlines() if "server_moves" not in line and "server_port_taken" not in line]
    assert (done.returncode, done.stdout[9:], said) == (0, "demo:click_button: 1 of 1 solved\n", [])
    steps = f"{ROOT / 'examples/own_judge.py'}:clean_steps_v1"
    done = await run_example("try_judges.py", *where, steps)
    assert (done.returncode, done.stdout) == (0, "train-r0000-a-m0: clean_steps_v1 success 1.0\n"), done.stderr
    for name, *judges in (("try_judges.py", steps), ("custom_consumer.py",)):
        nowhere = await run_example(name, "--run-dir", str(tmp_path / "nowhere"), *judges)
        assert nowhere.returncode == 78
        assert nowhere.stderr.startswith(f"{tmp_path / 'nowhere'} holds no run: give the folder of a run that was created")
        assert nowhere.stderr.count("\n") == 1
    place = tmp_path / "run/server/nats.json"
    with closed_port() as port:
        place.write_text(re.sub(r"nats://127.0.0.1:\d+", f"nats://127.0.0.1:{port}", place.read_text()))
        foreign = await run_example("foreign_consumer.py", *where, "--screenshots", str(tmp_path / "seen"), isolated=True)
    assert foreign.returncode == 1
    assert foreign.stderr.startswith("no server answers at nats://127.0.0.1:")
    assert foreign.stderr.count("\n") == 1


def test_the_foreign_consumer_knows_nothing_of_ours() -> None:
    source = (ROOT / "examples/foreign_consumer.py").read_text()
    imported = {line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported == {"argparse", "asyncio", "json", "sys", "pathlib", "zlib", "msgpack", "nats"}
