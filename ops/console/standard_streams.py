"""A command's standard output and error streams, whose reader may leave: what is written from then on is dropped.

So `millrace calibrate ... | head` shows its ten lines, and `millrace rejudge ... | head` still judges everything.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Output(io.FileIO):
    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            # Whatever else writes to this descriptor, also as Python ends, needs no more to know of it.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return super().write(data)


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """Streams that somebody has put in place of the process's own are left alone."""
    before = sys.stdout, sys.stderr
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        sys.stdout = _forgiving(sys.__stdout__)
    if sys.__stderr__ is not None and sys.stderr is sys.__stderr__:
        sys.stderr = _forgiving(sys.__stderr__)
    try:
        yield
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        sys.stdout, sys.stderr = before


def _forgiving(stream: TextIO) -> TextIO:
    stream.flush()
    is_line_buffered = stream is sys.__stderr__ or stream.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=is_line_buffered,
    )
