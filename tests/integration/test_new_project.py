"""A new project, as a newcomer uses it: its own test with Chromium, its scripted player, and two versions that are trained."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ops.processes.role_process import millrace_command, millrace_environment
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.integration]
_TWO_VERSIONS = (
    "feeder_config.num_iterations=2",
    "feeder_config.evaluate_first=false",
    "env_config.test_tasks_repeat_times=1",
    "env_config.train_tasks_rollout_size=24",
)
_SCRIPTED = (
    "policy_config.engine=oracle",
    "feeder_config.demonstrate=true",
    "feeder_config.mode=rollout",
    "feeder_config.num_iterations=1",
    "feeder_config.evaluate_first=false",
    "feeder_config.evaluate_last=false",
    "env_config.train_tasks_rollout_size=24",
)


def typed(command: tuple[str, ...], folder: Path) -> str:
    """What it printed."""
    done = subprocess.run(
        command, cwd=folder, env=millrace_environment(), capture_output=True, text=True, check=False, timeout=HANGS_S
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("project")
    typed(millrace_command(["new", "mine"]), parent)
    return parent / "mine"


def figures(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_its_own_test_passes(project: Path) -> None:
    assert "2 passed" in typed((sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"), project)


def test_the_scripted_player_solves_every_task(project: Path) -> None:
    typed(millrace_command(["run", "config.yaml", "--run-dir", "runs/look", *_SCRIPTED]), project)
    judged = typed(millrace_command(["watch", "judgements", "--run-dir", "runs/look", "--no-follow"]), project).splitlines()
    messages = [json.loads(line)["message"] for line in judged]
    assert [message["reward"] for message in messages] == [1.0] * 24
    assert {message["rubric"] for message in messages} == {"garden_v1"}


def test_the_tiny_model_is_trained_by_the_judge_and_the_estimator_of_the_project(project: Path) -> None:
    typed(millrace_command(["run", "config.yaml", *_TWO_VERSIONS]), project)
    trained = [line for line in figures(project / "runs" / "first") if "loss" in line]
    assert [line["version"] for line in trained] == [1, 2]
    assert all(line["parse_rate"] > 0.8 for line in trained), "it clicks from the beginning"
    assert "every admitted task has one trajectory and one judgement" in typed(
        millrace_command(["audit", "runs/first"]), project
    )
