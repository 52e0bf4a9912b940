"""The whole system with real parts: a short quickstart in which every role, and the server, is killed while it learns."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ops.role_process import millrace_command, millrace_environment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
_LIMIT_S = 700.0
_SHORT = ("feeder_config.num_iterations=3", "env_config.train_tasks_rollout_size=96", "algorithm_config.num_train_epochs=1")


@contextmanager
def quickstart(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = millrace_command(["quickstart", "--run-dir", str(folder), "--seed", "3", *_SHORT])
    with (folder.parent / "terminal.txt").open("wb") as output:
        process = subprocess.Popen(command, env=millrace_environment(), stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def find(process: subprocess.Popen[bytes], *words: str) -> psutil.Process | None:
    """The innermost process below the quickstart whose command line has all these words."""
    found = None
    for child in descendants(process):
        try:
            line = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if all(word in line for word in words) and "ops.guard" not in line and "guard.py" not in line:
            found = child
    return found


def wait_for(process: subprocess.Popen[bytes], what: str, log: Path, deadline: float) -> None:
    """Waits until a role's log holds an event."""
    while not (log.exists() and what in log.read_text()):
        assert process.poll() is None, f"the quickstart ended before {what}"
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.1)


def test_every_role_is_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    deadline = time.monotonic() + _LIMIT_S
    with quickstart(folder) as process:
        wait_for(process, "version_published", folder / "logs" / "trainer-1.log", deadline)
        for words in (("--name", "browser-1"), ("--name", "judge-1"), ("--name", "trainer-1"), ("nats.conf",), ("policy-1",)):
            victim = find(process, *words)
            assert victim is not None, f"no process with {words}"
            victim.kill()
        assert process.wait(max(1.0, deadline - time.monotonic())) == 0, (tmp_path / "terminal.txt").read_text()[-3000:]
        assert not descendants(process)
    result = json.loads((folder / "result.json").read_text())
    assert result["audit_holds"], result
    assert result["num_tasks"] == result["num_trajectories"] == result["num_judgements"] == 3 * 96 + 2 * 100
    assert (result["num_duplicates"], result["num_shared_pages"]) == (0, 0)
    assert result["num_restarts"] >= 4
    assert result["max_staleness"] <= 1
    assert result["max_mismatch"] < 0.05
    assert (folder / "curve.png").stat().st_size > 0
    assert (folder / "episode.png").stat().st_size > 0


def test_killing_the_supervisor_leaves_no_process(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with quickstart(folder) as process:
        wait_for(process, "server_ready", folder / "logs" / "server-1.log", time.monotonic() + 60)
        below = descendants(process)
        assert below
        os.kill(process.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(below, timeout=15)
        assert not alive, [child.name() for child in alive]
