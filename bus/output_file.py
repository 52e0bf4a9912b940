"""The file that takes what a child process says: where it has grown too long it is emptied into `<name>.1` while that runs.

A process writes on into the file that it was started with, so that one is never renamed. What is said between the copying and
the emptying is lost.
"""

from contextlib import suppress
from functools import partial
from os import SEEK_END, truncate
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread
from anyio.abc import Process

from bus.background import background

_LIMIT_BYTES = 16 * 1024 * 1024
_LOOK_S = 60.0
_TAIL_BYTES = 4096


def open_output(path: Path) -> BinaryIO:
    """To append, as whatever writes to a file has to that may be emptied meanwhile."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _bound(path)
    return path.open("ab")


async def ended(process: Process, output: Path) -> int:
    """Waits for the process, whose output is bounded for so long, and returns as `Process.wait`."""
    async with background(partial(_keep_bounded, output)):
        return await process.wait()


def last_lines(path: Path) -> list[str]:
    """Those of its end that say something."""
    try:
        lines = _end_of(path, _TAIL_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip()]


async def _keep_bounded(path: Path) -> None:
    while True:
        await anyio.sleep(_LOOK_S)
        await anyio.to_thread.run_sync(_bound, path)


def _bound(path: Path) -> None:
    """Where the disk does not let it, it is tried again at the next look."""
    with suppress(OSError):
        if path.stat().st_size > _LIMIT_BYTES:
            path.with_name(path.name + ".1").write_bytes(_end_of(path, _LIMIT_BYTES))
            truncate(path, 0)


def _end_of(path: Path, num_bytes: int) -> bytes:
    with path.open("rb") as file:
        file.seek(-min(num_bytes, path.stat().st_size), SEEK_END)
        return file.read()
