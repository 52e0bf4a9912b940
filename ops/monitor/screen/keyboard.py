"""Keys as they are pressed, without Enter; the terminal is as before afterwards."""

import os
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import anyio


async def pressed() -> AsyncIterator[str]:
    """Single characters from the terminal; none where standard input is no terminal."""
    name = _terminal()
    if name is None:
        return
    with _opened(name) as descriptor, _unbuffered(descriptor):
        while True:
            await anyio.wait_readable(descriptor)
            data = os.read(descriptor, 64)
            if not data:
                return
            for character in data.decode(errors="ignore"):
                yield character


def _terminal() -> str | None:
    try:
        descriptor = sys.stdin.fileno()
        name = os.ttyname(descriptor)
    except (OSError, ValueError):
        return None
    try:
        # A process in the background is stopped when it touches the terminal that controls it.
        return name if os.tcgetpgrp(descriptor) == os.getpgrp() else None
    except OSError:
        return name  # it controls nobody


@contextmanager
def _opened(name: str) -> Iterator[int]:
    """A description of its own: the event loop makes what it waits for non-blocking, and standard output shares that of
    standard input."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOCTTY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _unbuffered(descriptor: int) -> Iterator[None]:
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
