"""A Chromium on this machine that is not a worker's own, driven through DevTools on loopback."""

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.abc

from browser_workers.chromium.process.executable import find_chromium, sandboxed
from tests.deadlines import HANGS_S


@asynccontextmanager
async def other_chromium(profile: Path, port: int = 0, *arguments: str) -> AsyncIterator[tuple[anyio.abc.Process, str]]:
    """Its process, and the address of its DevTools' WebSocket."""
    command = [
        str(find_chromium()),
        "--headless",
        *([] if sandboxed() else ["--no-sandbox"]),
        f"--remote-debugging-port={port}",
        f"--user-data-dir={profile}",
        *arguments,
        "about:blank",
    ]
    # Some systems start it by a script: a group of their own is what can be ended.
    async with await anyio.open_process(command, stdout=None, start_new_session=True) as process:
        try:
            yield process, await _devtools(process)
        finally:
            kill(process)


def kill(process: anyio.abc.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _devtools(process: anyio.abc.Process) -> str:
    assert process.stderr is not None
    said = b""
    with anyio.fail_after(HANGS_S):
        while not (found := re.search(rb"(ws://127\.0\.0\.1:\d+/\S+)\s", said)):
            said += await process.stderr.receive()
    return found[1].decode()
