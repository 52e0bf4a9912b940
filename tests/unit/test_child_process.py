"""Processes of our own: nothing is left of one whose start or run was cancelled, and all that it says is heard."""

import gc
import itertools
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import psutil
import pytest

from bus import child_process
from bus.child_process import run_process, start_process
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
SLEEPS = (sys.executable, "-S", "-c", "import time; time.sleep(600)")
SPEAKS = (sys.executable, "-S", "-c", "import sys; print('x' * 2**20); print('why', file=sys.stderr); sys.exit(3)")


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("run", [run_process, start_process])
async def test_nothing_is_left_of_what_was_cancelled_after_any_number_of_turns(run: object, turns: int) -> None:
    """Of the event loop."""
    gc.collect()  # what earlier tests left
    before = set(psutil.Process().children())

    async def body() -> None:
        if run is run_process:
            await run_process(SLEEPS)
        else:
            async with await start_process(SLEEPS):
                await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(body)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert set(psutil.Process().children()) <= before
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    assert not [str(warning.message) for warning in caught]


async def test_what_was_said_is_heard_whole() -> None:
    done = await run_process(SPEAKS)
    assert (len(done.stdout.strip()), done.stderr, done.returncode) == (2**20, b"why\n", 3)
    together = await run_process(SPEAKS, stderr=subprocess.STDOUT)
    assert b"why" in together.stdout


async def test_what_is_no_program_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        await start_process(["/nowhere/no-such-program"])


_PARENT = """
import pathlib, subprocess, sys, time
child = "import itertools, pathlib, sys\\nfor n in itertools.count(): pathlib.Path(sys.argv[1], str(n % 50)).write_text('x')"
subprocess.Popen([sys.executable, "-S", "-c", child, sys.argv[1]])
print("started", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("num_late", [0, 3], ids=["dies at once", "dies late"])
async def test_nothing_that_a_cancelled_command_has_started_goes_on(
    num_late: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser's processes used to write into a folder that was being removed."""
    folder = tmp_path / "profile"
    folder.mkdir()
    kill, tries = os.killpg, itertools.count()

    def late(group: int, number: int) -> None:
        """As of a process in the middle of a write, on a machine that is busy."""
        kill(group, number if next(tries) >= num_late else 0)

    if num_late:
        monkeypatch.setattr(child_process, "_PAUSES_S", (0.0, 0.01))
    monkeypatch.setattr(os, "killpg", late)
    with anyio.fail_after(HANGS_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run_process, (sys.executable, "-S", "-c", _PARENT, str(folder)))
            while not any(folder.iterdir()):  # noqa: ASYNC110 - another process writes there
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(shutil.rmtree, folder)
    await anyio.sleep(0.05)
    assert not folder.exists()
    left = [process for process in psutil.process_iter(["cmdline"]) if str(folder) in (process.info["cmdline"] or ())]
    assert all(process.status() == psutil.STATUS_ZOMBIE for process in left)
