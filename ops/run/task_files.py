"""Writes task files: a line of JSON a task."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from schemas.errors import TaskFileError


def write_tasks(out: Path, lines: Iterable[Mapping[str, object]]) -> None:
    """Raises `TaskFileError` when the file cannot be written."""
    with task_file(out) as write:
        for line in lines:
            write(msgspec.json.encode(line) + b"\n")


@contextmanager
def task_file(out: Path) -> Iterator[Callable[[bytes], object]]:
    """Gives what writes a line; the file is there, whole, when the block ends without an error.

    Raises:
        TaskFileError: it cannot be written.
    """
    partial = out.with_name(f"{out.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file.write
        partial.replace(out)
    except OSError as error:
        raise TaskFileError(f"{out} cannot be written ({error.strerror}); name a file in a folder that exists") from error
    finally:
        with suppress(OSError):
            partial.unlink()
