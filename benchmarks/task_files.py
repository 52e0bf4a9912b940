"""How long 300,000 published tasks take to be prepared, checked and begun with by a feeder, and how much memory that needs.

    python -m benchmarks.task_files
    python -m benchmarks.task_files --tasks 3000 --out build/task_files

Tasks are generated: WebGym's fields, about 1.2 kB a line, three facts in each. Every row is a process of its own.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.report import RESULTS, Report

_WORDS = ("find", "the", "oldest", "blue", "kite", "with", "two", "lines", "below", "thirty", "and", "open", "its", "page")
_SITES = 120_000
_START = "start"
_SAMPLER = "frontier"
_PROGRAM = """
import pathlib, re, sys
if sys.argv[1] == "start":
    from benchmarks.task_files import start
    code = int(not start(pathlib.Path(sys.argv[2])))
else:
    from ops.cli import main
    code = main(sys.argv[1:])
print(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
sys.exit(code)
"""
"""Its last line is the most memory that the process itself had, in kB: what `wait4` counts began with this one's."""


@dataclass(frozen=True)
class Row:
    what: str
    tasks: int
    file_mb: float
    seconds: float
    cpu_s: float
    peak_mb: float
    """Of resident memory, of the whole process."""


def _write(file: Path, number: int) -> Path:
    draw = random.Random(0)
    with file.open("wb") as lines:
        for index in range(number):
            lines.write(msgspec.json.encode(_task(index, draw)) + b"\n")
    return file


def _task(index: int, draw: random.Random) -> dict[str, Any]:
    def said(length: int) -> str:
        return " ".join(draw.choices(_WORDS, k=length))

    return {
        "benchmark_name": "generated",
        "task_name": said(40),
        "domain": f"domain {index % 6}",
        "subdomain": f"subdomain {index % 30}",
        "website": f"https://www.site{draw.randrange(_SITES)}.example/",
        "definite_answer": said(4) if index % 3 else "",
        "task_id": str(index),
        "difficulty": 1 + index % 9,
        "evaluator_reference": [{"id": 1, "description": said(8), "facts": [said(30) for _ in range(3)]}],
        "task_id_decomposed_from": None,
        "distribution": ("id", "ood")[index % 2],
    }


def _rows(folder: Path, number: int) -> Iterator[Row]:
    published, prepared = _write(folder / "train.jsonl", number), folder / "prepared.jsonl"
    table = _as_parquet(published)
    sample = ("--sample", "2000", "--difficulty", "hard")
    for what, file, words in (
        ("prepare, JSON lines", published, ("tasks", "prepare", "webgym", str(published), "--out", str(prepared))),
        ("prepare, Parquet", table, ("tasks", "prepare", "webgym", str(table), "--out", str(prepared))),
        ("prepare, 2,000 hard ones", published, ("tasks", "prepare", "webgym", str(published), "--out", "few.jsonl", *sample)),
        ("check", prepared, ("tasks", "check", str(prepared))),
        ("start of a feeder", prepared, (_START, str(prepared))),
    ):
        seconds, cpu_s, peak_mb = _measured(words, folder)
        yield Row(what, number, file.stat().st_size / 1e6, seconds, cpu_s, peak_mb)


def start(file: Path) -> int:
    """What a feeder does before it admits its first tasks, but for the bus; with the sampler that holds most. How many it has
    then."""
    from ops.config.loading import load_config
    from ops.config.overrides import as_overrides
    from ops.run.tasks import tasks_of
    from trainer.feeding.blocked_sites import TrainingSites
    from trainer.feeding.training_plan import TrainingPlan

    keys = {"env_config.train_tasks": file.name, "data_path": str(file.parent), "env_config.train_tasks_sampler": _SAMPLER}
    config = load_config("default", as_overrides(keys))
    tasks = tasks_of(config, config.env_config.train_tasks)
    sites = TrainingSites(tasks)
    plan = TrainingPlan(config.feeder_config, config.env_config, config.objective_config, tasks, sites.by_task)
    return len(plan.take(64, blocked=frozenset()))


def _as_parquet(published: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file, rows, schema = published.with_suffix(".parquet"), [], None
    writer: pq.ParquetWriter | None = None
    with published.open("rb") as lines:
        for line in lines:
            rows.append(msgspec.json.decode(line) | {"task_id_decomposed_from": ""})
            if len(rows) == 10_000:
                writer, schema, rows = _append(pa, pq, file, writer, schema, rows)
    if rows:
        writer, schema, rows = _append(pa, pq, file, writer, schema, rows)
    assert writer is not None
    writer.close()
    return file


def _append(pa: Any, pq: Any, file: Path, writer: Any, schema: Any, rows: list[Any]) -> tuple[Any, Any, list[Any]]:
    table = pa.Table.from_pylist(rows, schema=schema)
    writer = writer or pq.ParquetWriter(file, table.schema)
    writer.write_table(table)
    return writer, table.schema, []


def _measured(words: tuple[str, ...], folder: Path) -> tuple[float, float, float]:
    """Seconds by the clock and of the processor, and peak in megabytes, of a process of its own."""
    began = time.perf_counter()
    output = folder / "output"
    with output.open("wb") as file:
        program = [sys.executable, "-c", _PROGRAM, *words]
        started = subprocess.Popen(program, stdout=file, stderr=file, env=_environment(), cwd=folder)
        _, status, used = os.wait4(started.pid, 0)
    seconds = time.perf_counter() - began
    started.returncode = os.waitstatus_to_exitcode(status)
    said = output.read_text()
    if started.returncode:
        raise SystemExit(said)
    return seconds, used.ru_utime + used.ru_stime, int(said.splitlines()[-1]) * 1024 / 1e6


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=300_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(_rows(Path(folder), options.tasks))
    Report(
        name="task_files",
        title=f"{options.tasks:,} published tasks",
        rows=rows,
        notes=(
            "target of preparing JSON lines, check and start together: below 60 s, and each below 700 MiB (734 MB)",
            f"a feeder's start: reading, sites, plan and first tasks, with the sampler {_SAMPLER}",
            "the start of Python is in every row",
        ),
    ).publish(options.out)


if __name__ == "__main__":
    main()
