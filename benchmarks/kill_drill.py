"""Kill drill: a quickstart for each role, in which that role is killed while it learns; it has to end as if nothing had been.

    python -m benchmarks.kill_drill --out drill            # about five minutes a role on two cores
    python -m benchmarks.kill_drill --out drill --roles trainer,nats-server

Prints a table and writes the same figures to <out>/drill.json.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from ops.processes.role_process import millrace_command, millrace_environment

VICTIMS = {
    "browser": ("--name", "browser-1"),
    "policy": ("--name", "policy-1"),
    "judge": ("--name", "judge-1"),
    "trainer": ("--name", "trainer-1"),
    "nats-server": ("nats.conf",),
}
"""Words in the command line of each role's own process."""
_LIMIT_S = 900.0
_STOPPING_S = 20.0
_COLUMNS = (
    "warm_start_success", "final_success", "loop_seconds", "num_restarts", "num_tasks", "num_trajectories",
    "num_judgements", "num_duplicates", "max_mismatch", "audit_holds",
)  # fmt: skip


@contextmanager
def quickstart(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A quickstart as a process of its own; interrupted on leaving, if it still runs."""
    command = millrace_command(["quickstart", "--run-dir", str(folder), *arguments])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".txt").open("wb") as output:
        process = subprocess.Popen(command, env=millrace_environment(), stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(_STOPPING_S)


def descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def find(process: subprocess.Popen[bytes], words: Sequence[str]) -> psutil.Process:
    """The process below the quickstart whose command line has all these words; guards do not count.

    Raises:
        LookupError: there is none.
    """
    for child in descendants(process):
        try:
            line = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if all(word in line for word in words) and "guard" not in line:
            return child
    raise LookupError(f"no process below the quickstart has {' '.join(words)} in its command line")


def wait_for(process: subprocess.Popen[bytes], event: str, log: Path, *, times: int, limit_s: float) -> None:
    """Returns once a role's log holds an event so many times.

    Raises:
        TimeoutError: it did not, or the quickstart ended before.
    """
    deadline = time.monotonic() + limit_s
    while not (log.exists() and log.read_text().count(event) >= times):
        if process.poll() is not None or time.monotonic() > deadline:
            raise TimeoutError(f"{event} did not happen {times} times in {log.name}")
        time.sleep(0.2)


def drill(role: str, folder: Path, seed: int) -> dict[str, object]:
    """One quickstart with one kill; its result."""
    with quickstart(folder, "--seed", str(seed)) as process:
        wait_for(process, "version_published", folder / "logs" / "trainer-1.log", times=5, limit_s=_LIMIT_S)
        find(process, VICTIMS[role]).kill()
        process.wait(_LIMIT_S)
    result: dict[str, object] = json.loads((folder / "result.json").read_text())
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--roles", default=",".join(VICTIMS), help="default: all of %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the first role; counts up from there")
    options = parser.parse_args()
    results: dict[str, dict[str, object]] = {}
    for number, role in enumerate(options.roles.split(",")):
        results[role] = drill(role, options.out / role, options.seed + number)
        (options.out / "drill.json").write_text(json.dumps(results, indent=2) + "\n")
    table = Table("killed", *_COLUMNS)
    for role, result in results.items():
        table.add_row(role, *(f"{value:.3g}" if isinstance(value := result[name], float) else str(value) for name in _COLUMNS))
    Console(width=180).print(table)
    return 0 if all(result["audit_holds"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
