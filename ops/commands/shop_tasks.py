"""`millrace tasks shop`: draws tasks over the demo shop, and writes them down."""

from pathlib import Path

from browser_workers.suites.shop.tasks.lines import task_lines
from browser_workers.suites.shop.tasks.task import Difficulty
from ops.run.task_files import write_tasks


def main(out: Path, seed: int, difficulty: str | None) -> int:
    lines = task_lines(seed, Difficulty[difficulty.upper()] if difficulty else None)
    write_tasks(out, lines)
    print(f"{len(lines)} tasks in {out}")
    return 0
