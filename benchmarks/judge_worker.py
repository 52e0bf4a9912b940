"""A real judge worker in a process of its own, without the guard around it, and what processes spend."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import psutil
from anyio.abc import Process

from bus.ports import Bus
from ops.processes.role_process import millrace_environment
from ops.run.folder import RunFolder
from schemas.messages import Heartbeat
from tests.support.judging.scripted_judging import SUBJECTS

_READY_S = 60.0
_CLOSING_S = 10.0


@asynccontextmanager
async def judge_worker(folder: RunFolder, bus: Bus, name: str) -> AsyncIterator[Process]:
    """One that waits for work; killed on leaving.

    Raises:
        TimeoutError: it did not begin.
    """
    command = (sys.executable, "-m", "tests.support.judging.judge_process", str(folder.path), name)
    process = await anyio.open_process(command, env=millrace_environment(), stdout=subprocess.DEVNULL, stderr=None)
    try:
        with anyio.fail_after(_READY_S):
            await _at_work(bus, name)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.move_on_after(_CLOSING_S, shield=True):
            await process.aclose()


async def _at_work(bus: Bus, name: str) -> None:
    async with bus.tail(SUBJECTS.heartbeats, SUBJECTS.everything("heartbeat")) as records:
        async for record in records:
            beat = record.message
            if isinstance(beat, Heartbeat) and beat.worker == name and beat.state in ("waiting", "working"):
                return


def cpu_s(pid: int) -> float:
    return sum(psutil.Process(pid).cpu_times()[:2])


def server_pid() -> int:
    """Of the nats-server that this process started."""
    return next(child.pid for child in psutil.Process().children(recursive=True) if "nats-server" in child.name())
