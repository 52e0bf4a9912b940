"""The examples do what they say, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from schemas.messages import Outcome, Split
from tests.builders import task
from tests.played import judge, play
from tests.running_run import running_run

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
            timeout=60,
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
        pictures = {path.name: path.read_bytes() for path in (tmp_path / "failures").iterdir()}
        assert pictures == {f"{failed.episode}.jpg": b"picture 2"}
        again = await run_example("custom_consumer.py", *arguments, "--durable", "example")
        assert (again.returncode, again.stdout) == (0, "")


async def test_any_language_reads_the_streams(tmp_path: Path) -> None:
    async with running_run(tmp_path / "run") as bus:
        first = await play(bus, task("a"), num_steps=2, outcome=Outcome.ANSWERED)
        second = await play(bus, task("b"), num_steps=1, outcome=Outcome.STEP_LIMIT)
        arguments = ["--run-dir", str(tmp_path / "run"), "--pictures", str(tmp_path / "seen")]
        done = await run_example("foreign_consumer.py", *arguments, isolated=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            f"{first.episode} answered: 2 pictures",
            f"{second.episode} step_limit: 1 pictures",
        ]
        seen = {str(path.relative_to(tmp_path / "seen")): path.read_bytes() for path in (tmp_path / "seen").rglob("*.jpg")}
        assert seen == {
            f"{first.episode}/0.jpg": b"picture 0",
            f"{first.episode}/1.jpg": b"picture 1",
            f"{second.episode}/0.jpg": b"picture 0",
        }


def test_the_foreign_consumer_knows_nothing_of_ours() -> None:
    source = (ROOT / "examples/foreign_consumer.py").read_text()
    imported = {line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported == {"argparse", "asyncio", "json", "pathlib", "zlib", "msgpack", "nats"}
