"""Writes task files: a line of JSON a task."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from schemas.errors import TaskFileError


def write_tasks(out: Path, lines: Iterable[Mapping[str, object]]) -> None:
    """Raises `TaskFileError` when the file cannot be written."""
    try:
        out.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    except OSError as error:
        raise TaskFileError(f"{out} cannot be written ({error.strerror}); name a file in a folder that exists") from error
