"""A role for tests: a process with descendants that try to outlive it, all holding one named pipe.

The pipe tells the test everything without polling: a line says that the tree stands, end of file that all of it is gone.
"""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from tests.deadlines import HANGS_S

_TREE = """
import json, os, signal, sys, time
mode = sys.argv[2]
pipe = os.open(sys.argv[1], os.O_WRONLY)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()                    # like a browser: its own session
    if os.fork() == 0:
        os.setsid()                # and an orphan from the start
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(write, b"x")
        time.sleep(600)
    if mode == "crash":
        os._exit(0)
    time.sleep(600)
os.read(read, 1)
line = {"pid": os.getpid(), "guard": os.getppid(), "mode": mode}
os.write(pipe, (json.dumps(line) + "\\n").encode())
if mode == "crash":
    print("it broke")
    sys.exit(3)
time.sleep(600)
"""


def tree_command(pipe: Path, mode: str = "calm") -> tuple[str, ...]:
    """`calm` runs until SIGTERM, `stubborn` ignores it, `crash` ends at once with code 3 and leaves an orphan behind."""
    return (sys.executable, "-I", "-S", "-c", _TREE, str(pipe), mode)


class Watch:
    """The reading end of the pipe."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        # Held until the end is waited for, so that a role that is between two lives does not look like the end.
        self._writer = os.open(path, os.O_WRONLY)
        self._buffer = b""

    async def stands(self) -> dict[str, int]:
        """The next tree: process ids of the role and of its inner guard."""
        with anyio.fail_after(HANGS_S):
            while b"\n" not in self._buffer:
                self._buffer += await self._read()
        line, self._buffer = self._buffer.split(b"\n", 1)
        found: dict[str, int] = json.loads(line)
        return found

    async def all_gone(self, within_s: float = HANGS_S) -> None:
        """Returns when no process holds the pipe any more."""
        self._let_go()
        with anyio.fail_after(within_s):
            while await self._read():
                pass

    def close(self) -> None:
        self._let_go()
        os.close(self._fd)

    def _let_go(self) -> None:
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1

    async def _read(self) -> bytes:
        await anyio.wait_readable(self._fd)
        return os.read(self._fd, 4096)


@asynccontextmanager
async def watched_pipe(path: Path) -> AsyncIterator[Watch]:
    os.mkfifo(path)
    watch = Watch(path)
    try:
        yield watch
    finally:
        watch.close()
