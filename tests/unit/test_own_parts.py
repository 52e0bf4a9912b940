"""The parts of examples/ take their place: named in a configuration, checked against its keys, and used."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ops.config.agreement import require_agreement
from ops.config.loading import load_config
from schemas.errors import ConfigurationError
from schemas.feeder_config import FeederConfig
from tests.support.training import ragged
from tests.support.training.learning_world import Recorder
from tests.unit.test_feeding_and_training import Played
from trainer.estimators import configured_estimator
from trainer.losses import Outputs
from trainer.objective.policy_objective import PolicyObjective

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_objective.py"
MEDIAN = [
    f"objective_config.adv_estimator='{EXAMPLE}:median'",
    f"objective_config.loss_type='{EXAMPLE}:asymmetric'",
    "objective_config.group_size=3",
    "env_config.train_tasks_rollout_size=6",
]


@pytest.mark.anyio
async def test_a_run_learns_with_an_estimator_of_its_users_own(tmp_path: Path) -> None:
    objective, recorder = load_config("default", MEDIAN).objective_config, Recorder()
    config = FeederConfig(num_iterations=3, max_staleness=1, max_concurrent=8)
    found = await Played().run(tmp_path, objective, config, recorder=recorder)
    assert len(found) == 3
    magnitudes = {abs(float(value)) for item in recorder.items for value in item.targets.advantages}
    assert magnitudes == {0.5, 1.0}, "R - median, of two where one had no verdict"


def test_its_formula_is_used() -> None:
    episodes = ragged.episodes(3)
    found = configured_estimator(load_config("default", MEDIAN).objective_config)(episodes)
    for episode, one in zip(episodes, found, strict=True):
        group = [other.score for other in episodes if other.group == episode.group]
        assert all(np.allclose(step, episode.score - float(np.median(group))) for step in one.advantages)


@pytest.mark.parametrize(("settings", "factor"), [([], 1.0), (["objective_config.settings={pessimism: 0.25}"], 0.25)])
def test_a_loss_has_settings_of_its_own(settings: list[str], factor: float) -> None:
    config = load_config("default", [*MEDIAN, *settings])
    require_agreement(config)
    objective = PolicyObjective(config.objective_config)
    batch = ragged.batch(ragged.items(ragged.sequences(1), "token-mean", 1.0))
    logprobs = torch.full_like(batch.advantages, -0.5, requires_grad=True)
    objective(Outputs(logprobs), batch).losses.sum().backward()  # type: ignore[no-untyped-call]
    expected = torch.where(batch.advantages < 0, factor, 1.0) * -batch.advantages
    assert (batch.advantages < 0).any()
    torch.testing.assert_close(logprobs.grad, expected)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("objective_config.settings={pesimism: 1}", "settings.pesimism: .* they have pessimism"),
        ("objective_config.group_size=1", "compares episodes of one task, and objective_config.group_size is 1"),
        ("objective_config.gamma=0.5", "gamma is 0.5, and has no effect where adv_estimator is .*median"),
        ("objective_config.clip_ratio_c=3", "clip_ratio_c is 3.0, and has no effect where loss_type is .*asymmetric"),
        ("objective_config.adv_estimator=none", "cloning goes with none, the other losses"),
    ],
)
def test_keys_that_they_do_not_read_are_refused(override: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        require_agreement(load_config("default", [*MEDIAN, override]))
