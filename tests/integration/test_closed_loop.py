"""The whole system with real parts: a short quickstart that a worker joins and leaves, and in which every role is killed."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ops.processes.role_process import millrace_environment
from ops.run.folder import RunFolder
from tests.deadlines import HANGS_S
from tests.support.drills.quickstart_process import VICTIMS, descendants, find, quickstart, wait_for
from tests.support.runs.leaving_role import role_command

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]
_LIMIT_S = 1500.0
_VERSIONS, _HELD_OUT = 4, 20
_FAMILY = ("--family", "find_button", "--observe", "marks")
"""The fewest demonstrations and the shortest warm start."""
_SHORT = (
    f"feeder_config.num_iterations={_VERSIONS}",
    "env_config.train_tasks_rollout_size=64",
    "algorithm_config.num_train_epochs=1",
    f"env_config.test_tasks_rollout_size={_HELD_OUT}",
)


@contextmanager
def a_browser_by_hand(folder: Path) -> Iterator[None]:
    """A second browser worker that joins, takes its share, and is told to leave."""
    command = role_command("browser", "--run-dir", str(folder), "--name", "browser-by-hand", "env_config.server_size=8")
    by_hand = subprocess.Popen(command, env=millrace_environment())
    try:
        yield
    finally:
        by_hand.terminate()
        assert by_hand.wait(HANGS_S) == 0


def test_workers_come_and_are_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with quickstart(folder, *_FAMILY, "--seed", "3", *_SHORT) as process:
        logs = folder / "logs"
        wait_for(process, "server_ready", logs / "server-1.log", times=1, limit_s=_LIMIT_S)
        with a_browser_by_hand(folder):
            wait_for(process, "version_published", logs / "trainer-1.log", times=1, limit_s=_LIMIT_S)
            for words in VICTIMS.values():
                find(process, words).kill()
            wait_for(process, "version_published", logs / "trainer-1.log", times=_VERSIONS - 1, limit_s=_LIMIT_S)
        assert process.wait(_LIMIT_S) == 0, (tmp_path / "run.txt").read_text()[-3000:]
        assert not descendants(process)
    result = json.loads((folder / "result.json").read_text())
    assert result["audit_holds"], result
    assert result["num_tasks"] == result["num_trajectories"] == result["num_judgements"] == _VERSIONS * 64 + 2 * _HELD_OUT
    assert (result["num_duplicates"], result["num_shared_pages"]) == (0, 0)
    assert result["num_restarts"] >= 4
    assert result["episodes_by_worker"]["browser-by-hand"] > 0
    assert result["max_staleness"] <= RunFolder(folder).load().feeder_config.max_staleness
    assert result["max_mismatch"] < 0.05
    assert (folder / "curve.png").stat().st_size > 0
    assert (folder / "episode.png").stat().st_size > 0


def test_killing_the_supervisor_leaves_no_process(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with quickstart(folder, *_FAMILY) as process:
        wait_for(process, "server_ready", folder / "logs" / "server-1.log", times=1, limit_s=_LIMIT_S)
        below = descendants(process)
        assert below
        process.kill()
        _, alive = psutil.wait_procs(below, timeout=HANGS_S)
        assert not alive, [child.name() for child in alive]
