"""What becomes of a sample each time that it is imitated."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ops.config.agreement import require_agreement
from ops.config.loading import load_config
from schemas.algorithm_config import AlgorithmConfig
from schemas.errors import ConfigurationError
from schemas.feeder_config import FeederConfig
from schemas.ids import EpisodeId
from schemas.messages import RecordRef
from schemas.objective_config import ObjectiveConfig
from tests.support.training.learning_world import Recorder, RecordingEngine
from tests.unit.test_feeding_and_training import Played
from trainer.augmentations import opened_augmentation, varied
from trainer.samples import Patches, Sample
from trainer.truncation import Truncation

GREY = Path(__file__).parents[2] / "examples" / "own_augmentation.py"
NOISY = """
from dataclasses import replace
from trainer.augmentations import augmentation

@augmentation("noisy")
def noisy(model):
    return lambda sample, rng: replace(sample, tokens=rng.integers(100, 10**6, len(sample.tokens)))
"""


def _sample() -> Sample:
    raw = np.random.default_rng(0).integers(0, 256, (6, 3 * 4), dtype=np.uint8)
    return Sample(
        ref=RecordRef(episode=EpisodeId("e"), attempt=1, kind="act", step=0),
        tokens=np.arange(5, dtype=np.int32),
        num_prompt=3,
        positions=np.zeros((3, 5), dtype=np.int32),
        logprobs=np.zeros(0, dtype=np.float32),
        temperature=1.0,
        screenshots=(Patches(raw, (1, 2, 3)),),
        versions=np.full(2, -1, dtype=np.int32),
    )


async def _learnt(folder: Path, loss: str, augmentation: str, recorder: Recorder) -> None:
    """Two versions by a policy gradient."""
    await Played().run(
        folder,
        ObjectiveConfig(adv_estimator="rloo", loss_type=loss, group_size=2),
        FeederConfig(num_iterations=2, max_staleness=1, max_concurrent=8),
        recorder=recorder,
        algorithm=AlgorithmConfig(num_train_epochs=2, augmentation=augmentation),
    )


@pytest.mark.anyio
async def test_every_epoch_sees_another_sample_and_a_trainer_that_died_the_same_ones(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NOISY)
    recorder = Recorder(kills={1, 2, 4})
    await Played().run(
        tmp_path / "run",
        ObjectiveConfig(),
        FeederConfig(num_iterations=3, max_staleness=1, max_concurrent=8),
        recorder=recorder,
        algorithm=AlgorithmConfig(num_train_epochs=2, augmentation=f"{tmp_path}/mine.py:noisy"),
    )
    assert not recorder.kills, "it died, and the engine has compared what came again"
    seen = [item.sample.tokens.tobytes() for item in recorder.items]
    assert len(seen) == len(set(seen)) > 6
    assert all(item.sample.tokens.min() >= 100 for item in recorder.items)


@pytest.mark.anyio
async def test_a_policy_gradient_without_ratios_trains_on_other_samples_worth_the_same(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NOISY)
    plain, recorder = Recorder(), Recorder()
    await _learnt(tmp_path / "plain", "reinforce", "none", plain)
    await _learnt(tmp_path / "varied", "reinforce", f"{tmp_path}/mine.py:noisy", recorder)
    assert all(item.sample.tokens.min() >= 100 for item in recorder.items)
    worth = [[(item.sample.ref, item.targets.advantages.tolist()) for item in each.items] for each in (plain, recorder)]
    assert worth[0] == worth[1] != []


@pytest.mark.anyio
async def test_what_is_varied_is_kept_near_the_start_of_the_update_and_weighed_against_what_was_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(sample: Sample) -> np.ndarray:
        """Stands for the weights at the start of the update, which are hardly another policy than the one that sampled."""
        return sample.logprobs + (sample.tokens[sample.num_prompt :] % 97).astype(np.float32) / 2000

    def logprobs(_: RecordingEngine, samples: Sequence[Sample], truncation: Truncation | None = None) -> list[np.ndarray]:
        return [said(sample) for sample in samples]

    monkeypatch.setattr(RecordingEngine, "completion_logprobs", logprobs)
    (tmp_path / "mine.py").write_text(NOISY)
    plain, recorder = Recorder(), Recorder(kills={1, 2})
    await _learnt(tmp_path / "plain", "decoupled", "none", plain)
    await _learnt(tmp_path / "varied", "decoupled", f"{tmp_path}/mine.py:noisy", recorder)
    assert not recorder.kills, "it died, and the engine has compared what came again"
    as_sampled = {item.sample.ref: item.sample for item in plain.items}
    assert {item.sample.ref for item in recorder.items} == {*as_sampled} != set()
    for item in recorder.items:
        sampled, targets = as_sampled[item.sample.ref], item.targets
        assert (item.sample.tokens != sampled.tokens).any()
        assert targets.proximal == pytest.approx(said(item.sample))
        assert targets.behaviour == pytest.approx(sampled.logprobs)


@pytest.mark.parametrize("name", ["brightness", f"{GREY}:grey"])
def test_screenshots_become_others_of_the_same_form_for_a_seed(name: str, tmp_path: Path) -> None:
    vary, sample = opened_augmentation(name, tmp_path), _sample()
    assert vary is not None
    before = sample.screenshots[0].raw.copy()
    first, again = (varied([sample] * 20, vary, seed=(1, 2)) for _ in range(2))
    found = [each.screenshots[0].raw for each in first]
    assert [each.tobytes() for each in found] == [each.screenshots[0].raw.tobytes() for each in again]
    assert {(each.dtype, each.shape) for each in found} == {(before.dtype, before.shape)}
    assert len({each.tobytes() for each in found}) > 1
    assert all(each.tokens is sample.tokens for each in first)
    assert (sample.screenshots[0].raw == before).all()


def test_grey_has_no_colour(tmp_path: Path) -> None:
    vary = opened_augmentation(f"{GREY}:grey", tmp_path)
    assert vary is not None
    changed = [each.screenshots[0].raw for each in varied([_sample()] * 40, vary, seed=(0,))]
    grey = next(each for each in changed if (each != _sample().screenshots[0].raw).any()).reshape(6, 3, 4)
    assert (grey == grey[:, :1]).all()


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["objective=rloo"], "augmentation is brightness, and the objective keeps tokens near"),
        (["objective=grpo", "objective_config.proximal=interpolated"], "with proximal: forward"),
        (
            ["objective_config.loss_type=weighted_cloning"],
            "for objective_config.loss_type behaviour_cloning, reinforce, decoupled or truncated",
        ),
        (["objective=reinforce", "objective_config.kl_loss_coef=0.1"], "without a divergence"),
    ],
)
def test_it_goes_with_losses_that_ask_for_no_other_log_probabilities(overrides: list[str], sentence: str) -> None:
    require_agreement(load_config("webgym", ["algorithm_config.augmentation=brightness"]))
    for objective in ("reinforce", "grpo"):
        require_agreement(load_config("quickstart", ["algorithm_config.augmentation=brightness", f"objective={objective}"]))
    with pytest.raises(ConfigurationError, match=sentence):
        require_agreement(load_config("quickstart", ["algorithm_config.augmentation=brightness", *overrides]))


def test_none_is_none_and_another_name_is_told_what_there_is(tmp_path: Path) -> None:
    assert opened_augmentation("none", tmp_path) is None
    with pytest.raises(ConfigurationError, match="one of none, brightness"):
        load_config("webgym", ["algorithm_config.augmentation=brightnes", "algorithm_config.num_train_epochs=1"])
