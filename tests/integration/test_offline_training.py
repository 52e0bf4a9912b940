"""Offline training by one command, with a real nats-server and real DeepSpeed: through kills, and without a browser."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from bus.lineage import all_announced
from ops.processes.role_process import millrace_command, millrace_environment
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.algorithm_config import AlgorithmConfig
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.messages import Checkpoint, Judgement
from schemas.policy_config import PolicyConfig
from schemas.trainer_config import TrainerConfig
from tests.builders import RUN
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.drills.quickstart_process import descendants, find, wait_for
from tests.support.training.trainer_runs import BATCH, REWARDS
from tests.support.training.trainer_world import SUBJECTS, PlainModel, judge, play, train_task
from trainer.model.model_folder import suppressed_tokens
from trainer.versions.announcements import Announcements

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]
_EXAMPLE = Path(__file__).parents[2] / "examples" / "offline_training.py"
_NUM_STORED = 2 * BATCH + 2
_ENDLESS = 1_000_000
_PASS = (6, 12, 14)
"""Episodes consumed after each iteration of a pass."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: judged episodes of its base model on the streams of its own server."""
    folder = RunFolder(tmp_path_factory.mktemp("source") / "run")
    base = tiny_models.build(folder.path / "base", seed=1)
    config = Config(
        save_path=str(folder.path),
        policy_config=PolicyConfig(base_model=str(base), top_k=-1, top_p=1.0, dtype="float32"),
        bus_config=BusConfig(run=RUN),
        env_config=EnvConfig(train_tasks_rollout_size=BATCH),
        trainer_config=TrainerConfig(torch_threads=1),
        algorithm_config=AlgorithmConfig(
            per_device_train_batch_size=4,
            gradient_accumulation_steps=1,
            learning_rate=1e-3,
            adam_beta2=0.95,
            warmup_steps=2,
            deepspeed_config_filename="ds_config_cpu_zero1.json",
        ),
    )
    folder.create(config)
    anyio.run(_play_all, folder, config, base)
    return folder.path


async def _play_all(folder: RunFolder, config: Config, base: Path) -> None:
    plain, suppressed = PlainModel(base), suppressed_tokens(base)
    async with served(folder, config), join(folder, config, role="admin", name="test") as bus:
        await Announcements(bus, SUBJECTS).announce_base(base)
        for index in range(_NUM_STORED):
            reward = REWARDS[index % BATCH]
            done = await play(
                bus, train_task(index), plain=plain, suppressed=suppressed, prompt=plain.prompt(), reward=reward or 0.0
            )
            await judge(bus, done, reward)


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env=millrace_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(HANGS_S)


def roles_of(process: subprocess.Popen[bytes]) -> set[str]:
    """Names of the roles that run below a command. No browser may be there under any name."""
    names: set[str] = set()
    for child in descendants(process):
        try:
            line = child.cmdline()
        except psutil.Error:
            continue
        assert "chrom" not in " ".join(line).lower()
        names.update(line[index + 1] for index, word in enumerate(line) if word == "--name")
    return names


def results(path: Path) -> tuple[list[Checkpoint], list[Judgement]]:
    """Versions and judgements of a run, read from its streams."""

    async def read() -> tuple[list[Checkpoint], list[Judgement]]:
        folder = RunFolder(path)
        config = folder.load()
        subjects = subjects_of(config)
        async with served(folder, config), join(folder, config, role="monitor", name="test") as bus:
            records = await bus.history(subjects.judged, subjects.judgements(None))
            judged = [record.message for record in records if isinstance(record.message, Judgement)]
            return await all_announced(bus, subjects), judged

    return anyio.run(read)


def test_a_kill_changes_nothing_and_no_browser_runs(source: Path, tmp_path: Path) -> None:
    into = tmp_path / "offline"

    def command(num_versions: int) -> tuple[str, ...]:
        versions = f"feeder_config.num_iterations={num_versions}"
        return millrace_command(["replay", str(source), "--into", str(into), "--train", versions])

    log = into / "logs" / "trainer-1.log"
    with running(*command(_ENDLESS)) as process:
        wait_for(process, "version_published", log, times=2, limit_s=HANGS_S)
        assert roles_of(process) == {"server-1", "trainer-1"}
        below = descendants(process)
        find(process, ("ops.cli", "replay")).kill()
        _, alive = psutil.wait_procs(below, timeout=HANGS_S)
        assert not alive
    # It may have published one more than its log says.
    num_versions = max(11, log.read_text().count("version_published") + 2)
    with running(*command(num_versions)) as process:
        assert process.wait(HANGS_S) == 0
    published, judged = results(into)
    assert [checkpoint.version for checkpoint in published] == list(range(num_versions + 1))
    consumed = [_NUM_STORED * (index // 3) + _PASS[index % 3] for index in range(num_versions)]
    assert [checkpoint.num_trajectories for checkpoint in published[1:]] == consumed
    assert len(judged) == _NUM_STORED, "put there twice, and there once"
    result = json.loads((into / "result.json").read_text())
    assert (result["num_stored"], result["num_trajectories"], result["stored_version"]) == (_NUM_STORED, consumed[-1], 0)
    assert result["first"]["mismatch"] < 1e-4, "the replayed tokens and screenshots are those that were sampled and seen"
    assert result["last"]["loss"] < 0.9 * result["first"]["loss"]


def test_the_example_trains(source: Path, tmp_path: Path) -> None:
    into = tmp_path / "example"
    done = subprocess.run(
        [sys.executable, str(_EXAMPLE), str(source), "--into", str(into), "--passes", "2"],
        env=millrace_environment(), capture_output=True, text=True, timeout=HANGS_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the model is in" in done.stdout
    result = json.loads((into / "result.json").read_text())
    assert (result["num_versions"], result["num_passes"], result["num_stored"]) == (6, 2.0, _NUM_STORED)
    assert result["last"]["loss"] < result["first"]["loss"]
    assert not Path(result["model"]).is_absolute()
    assert (into / result["model"] / "model.safetensors").is_file()


def test_trajectories_are_judged_again_with_the_runs_own_rubric(source: Path, tmp_path: Path) -> None:
    into = tmp_path / "rejudged"
    command = millrace_command(["replay", str(source), "--into", str(into), "--limit", "4", "--rejudge", "--train"])
    with running(*command) as process:
        assert process.wait(HANGS_S) == 0
    published, judged = results(into)
    assert [checkpoint.num_trajectories for checkpoint in published] == [0, 4]
    assert {(judgement.rubric, judgement.judge) for judgement in judged} == {("environment_v1", "judge-1")}
    assert len(judged) == 4


def test_of_two_rubrics_the_chosen_one_is_trained_by(source: Path, tmp_path: Path) -> None:
    """The second rubric says the opposite of the first."""
    twice, into = tmp_path / "twice", tmp_path / "strict"
    shutil.copytree(source, twice)
    anyio.run(_contradict, RunFolder(twice))
    command = ["replay", str(twice), "--into", str(into), "--train"]
    refused = subprocess.run(
        millrace_command(command), env=millrace_environment(), capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert refused.returncode == 78
    assert "judged by environment_v1, strict: choose one with --rubric" in refused.stderr
    with running(*millrace_command([*command, "--rubric", "strict"])) as process:
        assert process.wait(HANGS_S) == 0
    published, judged = results(into)
    assert {judgement.rubric for judgement in judged} == {"strict"}
    assert [checkpoint.num_trajectories for checkpoint in published[1:]] == list(_PASS)
    assert published[1].metrics["success"] == pytest.approx(0.2), "by the other rubric it was 0.8"
    counted = subprocess.run(
        millrace_command(["audit", "--run-dir", str(into)]), env=millrace_environment(), capture_output=True, timeout=HANGS_S,
        check=False,
    )  # fmt: skip
    assert counted.returncode == 0, counted.stdout


async def _contradict(folder: RunFolder) -> None:
    config = folder.load()
    async with served(folder, config), join(folder, config, role="admin", name="test") as bus:
        for record in await bus.history(SUBJECTS.judged, SUBJECTS.judgements(None)):
            assert isinstance(record.message, Judgement)
            reward = None if record.message.reward is None else 1.0 - record.message.reward
            await judge(bus, record.message.trajectory, reward, rubric="strict")


def test_an_archive_is_replayed_like_a_run(source: Path, tmp_path: Path) -> None:
    with running(*millrace_command(["archive", "--run-dir", str(source), "--once"])) as process:
        assert process.wait(HANGS_S) == 0
    into = tmp_path / "copy"
    with running(
        *millrace_command(["replay", str(source / "archive"), "--into", str(into), "--min-reward", "0.5"])
    ) as process:
        assert process.wait(HANGS_S) == 0
    published, judged = results(into)
    assert published == []
    assert [judgement.reward for judgement in judged] == [1.0] * 10
