"""JSON lines for pipes: a slow reader makes us wait without blocking the bus, one that leaves ends us quietly.

Where a terminal reads them, nothing in them is obeyed.
"""

import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import msgspec

from bus.background import companion_group
from schemas.text import spelled

_PIPE_BUF = 4096
"""A pipe that is ready takes so many bytes without blocking (Linux)."""


class ReaderGone(Exception):
    """Whoever read our output has closed it."""


class JsonLines:
    """Use `json_lines`. Writes whole lines, one after the other."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        mode = os.fstat(descriptor).st_mode
        self.is_pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

    async def write(self, value: object) -> None:
        """Raises `ReaderGone`."""
        line = memoryview(spelled(msgspec.json.encode(value).decode()).encode() + b"\n")
        try:
            while line:
                if self.is_pipe:
                    await anyio.wait_writable(self._descriptor)
                line = line[os.write(self._descriptor, line[:_PIPE_BUF] if self.is_pipe else line) :]
        except BrokenPipeError as error:
            raise ReaderGone from error

    async def wait_reader_gone(self) -> None:
        """Raises `ReaderGone` when the other end of a pipe closes, also while there is nothing to write."""
        if not self.is_pipe:
            return
        # Nothing can be read from this end: the only event is that the other one was closed.
        await anyio.wait_readable(self._descriptor)
        raise ReaderGone


@asynccontextmanager
async def json_lines(descriptor: int = 1) -> AsyncIterator[JsonLines]:
    """Leaves quietly when the reader goes."""
    lines = JsonLines(descriptor)
    try:
        async with companion_group() as group:
            group.start_soon(lines.wait_reader_gone)
            yield lines
    except* ReaderGone:
        # Python would try to flush what nobody reads when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
