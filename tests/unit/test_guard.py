"""The guard with real processes: whoever is killed, nothing is left."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ops.processes.guard import guard_command
from tests.deadlines import HANGS_S
from tests.support.runs.process_tree import Watch, tree_command, watched_pipe

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")]


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    return tmp_path / "pipe"


@pytest.fixture
async def watch(pipe: Path) -> AsyncIterator[Watch]:
    async with watched_pipe(pipe) as watch:
        yield watch


@contextmanager
def guarded(*command: str, parent: int | None = None, grace_s: float = HANGS_S) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(guard_command(command, parent=parent, grace_s=grace_s), start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_killed_command_takes_its_descendants_with_it(pipe: Path, watch: Watch) -> None:
    with guarded(*tree_command(pipe)) as outer:
        tree = await watch.stands()
        os.kill(tree["pid"], signal.SIGKILL)
        await watch.all_gone()
        assert outer.wait(HANGS_S) == 128 + signal.SIGKILL


async def test_a_killed_inner_guard_leaves_nothing(pipe: Path, watch: Watch) -> None:
    with guarded(*tree_command(pipe)) as outer:
        tree = await watch.stands()
        assert psutil.Process(tree["guard"]).ppid() == outer.pid
        os.kill(tree["guard"], signal.SIGKILL)
        await watch.all_gone()
        assert outer.wait(HANGS_S) == 128 + signal.SIGKILL


async def test_a_killed_outer_guard_leaves_nothing(pipe: Path, watch: Watch) -> None:
    with guarded(*tree_command(pipe)) as outer:
        await watch.stands()
        outer.kill()
        await watch.all_gone()


async def test_a_command_that_ends_takes_its_orphans_with_it_and_its_status_is_passed_on(pipe: Path, watch: Watch) -> None:
    with guarded(*tree_command(pipe, "crash")) as outer:
        await watch.stands()
        await watch.all_gone()
        assert outer.wait(HANGS_S) == 3


async def test_sigterm_reaches_the_command(pipe: Path, watch: Watch) -> None:
    with guarded(*tree_command(pipe)) as outer:
        await watch.stands()
        outer.terminate()
        await watch.all_gone()
        assert outer.wait(HANGS_S) == 128 + signal.SIGTERM


async def test_a_stubborn_command_is_killed_after_the_grace_period(pipe: Path, watch: Watch) -> None:
    with guarded(*tree_command(pipe, "stubborn"), grace_s=0.3) as outer:
        await watch.stands()
        outer.terminate()
        await watch.all_gone()
        assert outer.wait(HANGS_S) == 128 + signal.SIGKILL


async def test_a_second_signal_kills_at_once(pipe: Path, watch: Watch) -> None:
    with guarded(*tree_command(pipe, "stubborn"), grace_s=36_000.0) as outer:
        await watch.stands()
        outer.send_signal(signal.SIGINT)
        outer.send_signal(signal.SIGTERM)
        await watch.all_gone()


async def test_a_guard_whose_parent_is_already_gone_starts_nothing(pipe: Path, watch: Watch) -> None:
    with guarded(*tree_command(pipe), parent=2**22) as outer:
        assert outer.wait(HANGS_S) == 128 + signal.SIGTERM


def test_exit_codes_and_a_missing_command() -> None:
    for command, code in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["no-such-command"], 127)):
        assert subprocess.run(guard_command(command), capture_output=True, check=False).returncode == code
