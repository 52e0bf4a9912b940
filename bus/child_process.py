"""Processes of our own: one is started whole or not at all, whatever is cancelled meanwhile.

A start that is cut off half-way leaves a process that nobody waits for, and its pipes.
"""

import subprocess
from collections.abc import Sequence
from typing import Any

import anyio
from anyio.abc import Process


async def start_process(command: Sequence[str], **options: Any) -> Process:
    """As `anyio.open_process`. A cancellation is met behind it, where the caller has the process in hand.

    Raises:
        OSError: there is no such program, or it may not be run.
    """
    with anyio.CancelScope(shield=True):
        process: Process = await anyio.open_process(command, **options)  # noqa: TID251
    return process


async def run_process(command: Sequence[str], *, stderr: int = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
    """Runs a command to its end, without input; it is killed when this is cancelled.

    Raises:
        OSError: as above.
    """
    async with await start_process(command, stdin=subprocess.DEVNULL, stderr=stderr) as process:
        said = {"stdout": b"", "stderr": b""}

        async def read(name: str) -> None:
            stream = getattr(process, name)
            said[name] = b"".join([part async for part in stream])

        async with anyio.create_task_group() as group:
            for name in said:
                if getattr(process, name) is not None:
                    group.start_soon(read, name)
        return subprocess.CompletedProcess(command, await process.wait(), **said)
