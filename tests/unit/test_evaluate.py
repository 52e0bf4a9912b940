"""The figures of an evaluation, and which checkpoint is meant, by value."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ops.evaluate import EvaluationResult, checkpoint_folder, evaluation_config, whole_model, wilson_interval
from ops.run_folder import RunFolder
from schemas.config import BusConfig, Config, PolicyConfig
from schemas.errors import ConfigurationError
from schemas.ids import RunName
from schemas.messages import Verdict
from tests.builders import judgement, task, trajectory


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (50, 100, 0.4038, 0.5962), (81, 263, 0.2553, 0.3662), (10, 10, 0.7225, 1.0)],
)
def test_the_interval_is_wilsons(successes: int, total: int, low: float, high: float) -> None:
    """81 of 263 is the worked example of Newcombe (1998), table I, method 3."""
    assert wilson_interval(successes, total) == pytest.approx((low, high), abs=1e-4)


def test_only_scored_episodes_count() -> None:
    verdicts = [Verdict.SUCCESS, Verdict.FAILURE, Verdict.EXCLUDED, Verdict.ERROR, Verdict.FAILURE, Verdict.FAILURE]
    rewards = [0.9, 0.5, None, None, 0.0, 0.0]
    judgements = [
        replace(judgement(trajectory(task(f"e{index}"))), verdict=verdict, reward=reward)
        for index, (verdict, reward) in enumerate(zip(verdicts, rewards, strict=True))
    ]
    result = EvaluationResult.of(Path("/m"), judgements)
    assert (result.num_episodes, result.num_successes, result.success) == (4, 1, 0.25)
    assert result.reward == pytest.approx(0.35), "a partial reward is no success"
    assert result.low < 0.25 < result.high
    assert "1 of 4" in result.sentence()


def model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_checkpoint_is_a_version_or_a_folder(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    base = model(tmp_path / "base")
    run.create(
        Config(policy_config=PolicyConfig(base_model=str(base)), bus_config=BusConfig(run=RunName("r"))), needed_bytes=0
    )
    third = model(run.checkpoints / "v000003-abc")
    assert checkpoint_folder(run, "0") == base
    assert checkpoint_folder(run, "3") == third
    assert checkpoint_folder(run, str(base)) == base
    assert whole_model(run, third) == third
    with pytest.raises(ConfigurationError, match=r"kept \(0, 3\)"):
        checkpoint_folder(run, "2")
    config = evaluation_config(run, third, RunFolder(run.path / "evaluations" / third.name), ["env_config.server_size=3"])
    assert (config.feeder_config.mode, config.env_config.server_size) == ("eval", 3)
    assert config.policy_config.base_model == str(third)
    assert config.bus_config.run != "r", "its episodes are not the run's own"


def test_an_evaluation_is_judged_by_its_own_judge_alone(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.create(Config(bus_config=BusConfig(run=RunName("r"), rubrics=("environment_v1", "rubric_v1"))), needed_bytes=0)
    folder = RunFolder(run.path / "evaluations" / "base")
    config = evaluation_config(run, tmp_path, folder, ["judge_config.judge=rubric_v1"])
    assert config.bus_config.rubrics == ("rubric_v1",)
