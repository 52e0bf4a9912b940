"""Writes task files of the suites."""

from pathlib import Path

import msgspec

from browser_workers.suites.shop.tasks.lines import task_lines
from browser_workers.suites.shop.tasks.task import Difficulty
from schemas.errors import TaskFileError


def write_shop_tasks(out: Path, seed: int, difficulty: str | None) -> int:
    """Returns the exit code. Raises `TaskFileError` when the file cannot be written."""
    lines = task_lines(seed, Difficulty[difficulty.upper()] if difficulty else None)
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    try:
        out.write_bytes(text)
    except OSError as error:
        raise TaskFileError(f"{out} cannot be written ({error.strerror}); name a file in a folder that exists") from error
    print(f"{len(lines)} tasks in {out}")
    return 0
