"""Processes of our own: one is started whole or not at all, whatever is cancelled meanwhile.

A start that is cut off half-way leaves a process that nobody waits for, and its pipes.
"""

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import psutil
from anyio.abc import Process

NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR)
"""Of an `OSError` at a start: it stays so until a person does something. Others pass, as where there is no memory just now."""
_PAUSES_S = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
_GONE_S = 30.0
"""Most that a killed process is waited for: one whose disk does not answer is not gone before it does."""


async def start_process(command: Sequence[str], **options: Any) -> Process:
    """As `anyio.open_process`. A cancellation is met behind it, where the caller has the process in hand.

    Raises:
        OSError: there is no such program, or it may not be run.
    """
    with anyio.CancelScope(shield=True):
        process: Process = await anyio.open_process(command, **options)  # noqa: TID251
    return process


async def run_process(
    command: Sequence[str], *, stderr: int = subprocess.PIPE, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs a command to its end, without input. When this is cancelled, it is killed with all that it has started: nothing of
    it writes anywhere any more.

    Args:
        env: its environment; None: this process's.

    Raises:
        OSError: as above.
    """
    process = await start_process(command, stdin=subprocess.DEVNULL, stderr=stderr, env=env, start_new_session=True)
    try:
        return await _heard(process, command)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _end_group(process.pid)
        raise


async def _end_group(group: int) -> None:
    """What was killed is gone a moment later, on a busy machine some moments."""
    pauses = iter(_PAUSES_S)
    with anyio.move_on_after(_GONE_S):
        while True:
            try:
                os.killpg(group, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return
            pause_s = next(pauses, None)
            if pause_s is None and not await anyio.to_thread.run_sync(_goes_on, group):
                return
            await anyio.sleep(_PAUSES_S[-1] if pause_s is None else pause_s)


def _goes_on(group: int) -> bool:
    """Whether any process of it does something yet: one that nobody reaps stays in the list of processes, and does not."""
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
    return False


async def _heard(process: Process, command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    async with process:
        said = {"stdout": b"", "stderr": b""}

        async def read(name: str) -> None:
            stream = getattr(process, name)
            said[name] = b"".join([part async for part in stream])

        async with anyio.create_task_group() as group:
            for name in said:
                if getattr(process, name) is not None:
                    group.start_soon(read, name)
        return subprocess.CompletedProcess(command, await process.wait(), **said)
