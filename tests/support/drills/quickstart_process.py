"""A quickstart as a process of its own, whose roles can be found and killed."""

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from ops.processes.role_process import millrace_command, millrace_environment

VICTIMS = {
    "browser": ("--name", "browser-1"),
    "policy": ("--name", "policy-1"),
    "judge": ("--name", "judge-1"),
    "trainer": ("--name", "trainer-1"),
    "nats-server": ("nats.conf",),
}
"""Words in the command line of each role's own process."""
_STOPPING_S = 20.0


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
