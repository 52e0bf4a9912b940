"""Critic and reference beside the policy, on real DeepSpeed and a real tiny model."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor

from ops.run.folder import RunFolder
from ops.run.model_export import export_model
from schemas.config import Config
from schemas.errors import CheckpointCorrupt
from schemas.lora_config import LoraConfig
from schemas.objective_config import CriticConfig, ObjectiveConfig
from schemas.policy_config import PolicyConfig
from tests.support.agents import tiny_models
from tests.support.training.earlier_engines import watch_earlier_engines
from tests.support.training.trainer_world import PlainModel, completion, ref, settings
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import TrainEngine, open_engine
from trainer.episodes.sample_builder import SampleBuilder
from trainer.imitation import cloning_items
from trainer.items import Item, replaced
from trainer.ports import StepResult
from trainer.samples import Sample
from trainer.versions.checkpoints import TrainerState, write_checkpoint

pytestmark = [
    pytest.mark.integration,
    # torch's own wrappers under ZeRO-3 warn about the names that DeepSpeed calls.
    pytest.mark.filterwarnings("ignore:.*torch.distributed.*is deprecated:FutureWarning"),
]
STATE = TrainerState(version=1, num_trajectories=0, num_updates=0)
PPO = ObjectiveConfig(
    adv_estimator="gae", loss_type="clipped", kl_loss_coef=0.1, critic=CriticConfig(learning_rate=5e-3, value_clip=0.0)
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("model"), seed=1)


@pytest.fixture(scope="module")
def samples(base: Path) -> list[Sample]:
    torch.set_num_threads(1)
    return [sample_of(base, seed) for seed in range(4)]


def sample_of(base: Path, seed: int) -> Sample:
    from tests.integration.test_trainer_engine import step_request

    builder, prompt = SampleBuilder(base, cutoff_len=200), PlainModel(base).prompt()
    return builder.build(
        ref(seed), step_request(prompt, completion(seed, 4 + seed)), builder.patches([tiny_models.screenshot(seed).data])
    )


def ppo(stage: int = 1, objective: ObjectiveConfig = PPO) -> EngineSettings:
    return replace(settings(stage), objective=objective)


def items(samples: Sequence[Sample]) -> list[Item]:
    """Every second sample is worth 1."""
    return [
        Item(
            item.sample,
            replaced(
                item.targets,
                advantages=np.full(item.sample.num_completion, 1.0 - 2 * (index % 2)),
                returns=np.full(item.sample.num_completion, float(index % 2)),
            ),
        )
        for index, item in enumerate(cloning_items(samples))
    ]


def train_both(engine: TrainEngine, samples: Sequence[Sample], count: int) -> list[tuple[StepResult, StepResult]]:
    return [(engine.train_critic(items(samples)), engine.train(items(samples))) for _ in range(count)]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_critic_and_reference_continue_exactly(base: Path, samples: list[Sample], tmp_path: Path, stage: int) -> None:
    with open_engine(base, settings=ppo(stage)) as engine:
        at_first = engine.reference_logprobs(samples)
        assert all(np.array_equal(*pair) for pair in zip(at_first, engine.completion_logprobs(samples), strict=True))
        assert not np.concatenate(engine.values(samples)).any(), "an untrained critic says nothing"
        engine.train_critic(items(samples))
        assert engine.num_updates == 0, "the critic's updates are its own"
        train_both(engine, samples, 2)
        folder, _ = write_checkpoint(tmp_path, base=base, engine=engine.files(), state=STATE)
        expected = train_both(engine, samples, 2)
        values = np.concatenate(engine.values(samples))
    with open_engine(folder, settings=ppo(stage), resume=folder, base=base) as engine:
        assert train_both(engine, samples, 2) == expected
        assert np.array_equal(np.concatenate(engine.values(samples)), values)
        frozen = engine.reference_logprobs(samples)
        assert all(np.array_equal(*pair) for pair in zip(at_first, frozen, strict=True))
        assert np.abs(np.concatenate(frozen) - np.concatenate(engine.completion_logprobs(samples))).max() > 1e-3


def train_once(base: Path, samples: Sequence[Sample], stage: int) -> None:
    with open_engine(base, settings=ppo(stage)) as engine:
        train_both(engine, samples, 1)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_nothing_is_left_of_an_engine_when_the_next_one_is_opened(
    base: Path, samples: list[Sample], monkeypatch: pytest.MonkeyPatch, stage: int
) -> None:
    left = watch_earlier_engines(monkeypatch)
    for _ in range(2):
        train_once(base, samples, stage)
    assert left == [0, 0]


def test_the_critic_learns_which_samples_are_worth_more(base: Path, samples: list[Sample]) -> None:
    with open_engine(base, settings=ppo()) as engine:
        before = engine.completion_logprobs(samples)
        losses = [engine.train_critic(items(samples)).loss for _ in range(30)]
        values = [float(found.mean()) for found in engine.values(samples)]
        after = engine.completion_logprobs(samples)
    assert losses[-1] < 0.25 * losses[0]
    assert max(values[0], values[2]) + 0.3 < min(values[1], values[3])
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True)), "the policy is left alone"


def test_a_critic_before_any_update_and_one_that_is_missing(base: Path, samples: list[Sample], tmp_path: Path) -> None:
    """A checkpoint of the critic's warm-up resumes; one that was written without a critic is refused."""
    with open_engine(base, settings=ppo()) as engine:
        engine.train_critic(items(samples))
        folder, _ = write_checkpoint(tmp_path / "a", base=base, engine=engine.files(), state=STATE)
        expected = train_both(engine, samples, 1)
    with open_engine(folder, settings=ppo(), resume=folder, base=base) as engine:
        assert engine.num_updates == 0
        assert train_both(engine, samples, 1) == expected
    with open_engine(base, settings=ppo(), resume=folder, num_updates=3, base=base) as engine:
        assert engine.num_updates == 3, "of later weights, with a state from before the first update"
    with open_engine(base, settings=settings()) as engine:
        plain, _ = write_checkpoint(tmp_path / "b", base=base, engine=engine.files(), state=STATE)
    with (
        pytest.raises(CheckpointCorrupt, match=r"critic\.safetensors is missing"),
        open_engine(plain, settings=ppo(), resume=plain, base=base),
    ):
        pass


def test_the_reference_may_be_another_model(base: Path, samples: list[Sample], tmp_path: Path) -> None:
    other = tiny_models.build(tmp_path / "other", seed=2)
    with open_engine(other, settings=settings()) as engine:
        expected = engine.completion_logprobs(samples)
    named = ObjectiveConfig(kl_loss_coef=0.1, reference_model=str(other))
    with open_engine(base, settings=ppo(objective=named)) as engine:
        found = engine.reference_logprobs(samples)
    assert all(np.array_equal(*pair) for pair in zip(expected, found, strict=True))


@pytest.mark.parametrize("stage", [1, 3])
def test_of_adapters_the_reference_is_the_model_below(base: Path, samples: list[Sample], stage: int) -> None:
    lora = replace(settings().trainer, lora=LoraConfig(rank=4, targets=("q_proj", "v_proj")))
    with open_engine(base, settings=replace(ppo(stage), trainer=lora)) as engine:
        at_first = engine.reference_logprobs(samples)
        train_both(engine, samples, 2)
        frozen, policy = engine.reference_logprobs(samples), engine.completion_logprobs(samples)
        engine.train(items(samples))
        further = engine.completion_logprobs(samples)
    assert all(np.array_equal(*pair) for pair in zip(at_first, frozen, strict=True))
    assert np.abs(np.concatenate(policy) - np.concatenate(frozen)).max() > 1e-6
    assert np.abs(np.concatenate(policy) - np.concatenate(further)).max() > 1e-6, "it still learns"


def test_an_exported_version_is_an_ordinary_model(base: Path, samples: list[Sample], tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.create(Config(save_path=str(run.path), policy_config=PolicyConfig(base_model=str(base))))
    with open_engine(base, settings=ppo()) as engine:
        train_both(engine, samples, 1)
        write_checkpoint(run.checkpoints, base=base, engine=engine.files(), state=STATE)
        expected = engine.completion_logprobs(samples)
    assert export_model(run, tmp_path / "model") == 1
    AutoProcessor.from_pretrained(tmp_path / "model")
    _, report = AutoModelForImageTextToText.from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert not (tmp_path / "model/trainer").exists()
    with open_engine(tmp_path / "model", settings=settings()) as engine:
        again = engine.completion_logprobs(samples)
    assert all(np.array_equal(*pair) for pair in zip(expected, again, strict=True))
