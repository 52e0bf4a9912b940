"""Every loss on the real engine: the step is the same by any micro-batch size, on one rank or two, in every ZeRO stage."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from schemas.ids import EpisodeId
from schemas.objective_config import Aggregation, ObjectiveConfig
from tests.integration.test_trainer_engine import step_request
from tests.support.agents import tiny_models
from tests.support.training import ragged
from tests.support.training.loss_oracles import WITHOUT_RATIO
from tests.support.training.rank_processes import run_ranks
from tests.support.training.trainer_world import PlainModel, completion, ref, settings, small
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import open_engine
from trainer.episodes.sample_builder import SampleBuilder
from trainer.items import Item, targets_of
from trainer.objective.aggregation import token_weights
from trainer.objective.policy_objective import PolicyObjective
from trainer.samples import Sample
from trainer.token_losses import Outputs, TokenLosses, TokenTargets

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:.*torch.distributed.*is deprecated:FutureWarning"),
]
LOSSES: dict[str, Aggregation] = {
    "behaviour_cloning": "token-mean",
    "weighted_cloning": "seq-mean-token-sum",
    "clipped": "seq-mean-token-mean",
    "decoupled": "seq-mean-token-sum-norm",
    "truncated": "token-mean",
    "gspo": "seq-mean-token-mean",
    "cispo": "traj-mean-seq-sum",
    "dppo_tv": "traj-mean-token-mean",
    "reinforce": "traj-mean-token-sum",
}
STAGES = (1, 2, 3)
World = tuple[list[Sample], list[np.ndarray]]
"""Samples, and the model's own log-probabilities of them."""
Steps = dict[str, dict[str, float]]
"""Loss, gradient norm and metrics of one step of each loss, made one after the other by one engine."""


def configuration(loss: str) -> ObjectiveConfig:
    """Everything that may be added to the loss is."""
    return ragged.objective(
        loss,
        loss_agg_mode=LOSSES[loss],
        clip_ratio_c=1.05 if loss == "gspo" else 1.5,
        clip_ratio_low=0.05 if loss == "gspo" else 0.2,
        clip_ratio_high=0.05 if loss == "gspo" else 0.2,
        kl_loss_coef=0.2,
        entropy_coeff=0.05,
        early_stop_imp_ratio=1.1,
        behaviour_weight_cap=1.4,
        importance_weight_cap=1.02 if loss == "truncated" else 1.2,
        importance_weight_level="sequence-mean" if loss == "truncated" else "token",
        proximal="interpolated" if loss == "decoupled" else "forward",
        rejection_level="none" if loss in WITHOUT_RATIO else "token",
        rejection_low=0.8,
        kl_loss_type="low_var_kl+",
        settings={"tv_low": 1e-6, "tv_high": 1e-6} if loss == "dppo_tv" else {},
    )


class EveryObjective:
    """All objectives, so that one engine serves them all: the targets' values, which no policy loss reads, say which it is."""

    needs_entropy = True

    def __init__(self, config: ObjectiveConfig) -> None:
        del config
        self._objectives = [PolicyObjective(configuration(loss)) for loss in LOSSES]

    def __call__(self, outputs: Outputs, targets: TokenTargets) -> TokenLosses:
        return self._objectives[int(targets.values[0])](outputs, targets)


@pytest.fixture(scope="module", autouse=True)
def every_objective() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("trainer.engine.models.PolicyObjective", EveryObjective)
        yield


def settings_of(stage: int, micro: int) -> EngineSettings:
    return settings(stage, small(per_device_train_batch_size=micro, learning_rate=1e-5))


def samples(base: Path) -> list[Sample]:
    builder, plain = SampleBuilder(base, cutoff_len=200), PlainModel(base)
    return [
        builder.build(
            ref(seed),
            step_request(plain.prompt(), completion(seed, 3 + 2 * (seed % 4))),
            builder.patches([tiny_models.screenshot(seed).data]),
        )
        for seed in range(7)
    ]


def items(found: list[Sample], logprobs: list[np.ndarray], loss: str) -> list[Item]:
    """Random targets around the model's own log-probabilities; some tokens are not trained on."""
    rng = np.random.default_rng(0)
    masks = [rng.random(sample.num_completion) < 0.8 for sample in found]
    weights = token_weights(
        [mask.astype(np.float64) for mask in masks],
        LOSSES[loss],
        scale_factor=5.0,
        episodes=[EpisodeId(f"e{index % 3}") for index in range(len(found))],
    )
    made = []
    for sample, share, own in zip(found, weights, logprobs, strict=True):
        given = {name: own + rng.normal(0.0, 0.3, len(own)) for name in ("behaviour", "proximal", "reference")}
        given["advantages"] = rng.normal(size=len(own))
        given["staleness"] = rng.integers(0, 3, len(own)).astype(np.float64)
        given["values"] = np.full(len(own), list(LOSSES).index(loss))
        made.append(Item(sample, targets_of(sample, weights=share, **given)))
    return made


def steps(base: Path, world: World, *, stage: int, micro: int) -> Steps:
    found = {}
    with open_engine(base, settings=settings_of(stage, micro)) as engine:
        for loss in LOSSES:
            result = engine.train(items(*world, loss))
            found[str(loss)] = {"loss": result.loss, "grad_norm": result.grad_norm, **result.metrics}
    return found


def on_ranks(base: Path, logprobs: Path, out: Path) -> None:
    """What each of two processes runs: all losses, in one stage after the other; rank 0 writes the steps down."""
    from trainer.engine.training_engine import dismiss_ranks, follow

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("trainer.engine.models.PolicyObjective", EveryObjective)
        if os.environ["RANK"] != "0":
            for stage in STAGES:
                follow(settings=settings_of(stage, 3))
            return
        with np.load(logprobs) as stored:
            world = samples(base), [stored[name] for name in sorted(stored.files)]
        found = []
        for stage in STAGES:
            found.append(steps(base, world, stage=stage, micro=3))
            dismiss_ranks()
        out.write_text(json.dumps(found))


_RANK = """
import sys
from pathlib import Path
from tests.integration.test_objective_engine import on_ranks
on_ranks(*map(Path, sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("model"), seed=1)


@pytest.fixture(scope="module")
def world(base: Path) -> World:
    found = samples(base)
    with open_engine(base, settings=settings()) as engine:
        return found, engine.completion_logprobs(found)


@pytest.fixture(scope="module")
def alone(base: Path, world: World) -> Steps:
    """One rank, one micro-batch, ZeRO 1: what all others are held to."""
    return steps(base, world, stage=1, micro=7)


def agree(found: Steps, expected: Steps) -> None:
    assert list(found) == list(expected)
    for loss, ours in found.items():
        assert ours == pytest.approx(expected[loss], rel=1e-3, abs=1e-5), loss


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_configured_takes_part(alone: Steps, loss: str) -> None:
    """Otherwise the agreement below would say little."""
    found = alone[loss]
    assert np.isfinite(list(found.values())).all()
    assert min(found["grad_norm"], found["entropy"], found["kl_reference"]) > 0
    if loss in WITHOUT_RATIO:
        return
    left_out = {"decoupled": "dropped_tokens", "weighted_cloning": "truncated_weights", "truncated": "truncated_weights"}
    clips = "clipped_low" if loss in ("cispo", "dppo_tv") else "dual_clipped"
    for name in ("stopped_tokens", "rejected_tokens", "clipped_high", left_out.get(loss, clips)):
        assert 0 < found[name] < 0.8, name


@pytest.mark.parametrize(("stage", "micro"), [(1, 1), (1, 3), (2, 3), (3, 3)])
def test_micro_batches_and_stages_agree(base: Path, world: World, alone: Steps, stage: int, micro: int) -> None:
    agree(steps(base, world, stage=stage, micro=micro), alone)


def test_two_ranks_agree_with_one_in_every_stage(base: Path, world: World, alone: Steps) -> None:
    logprobs, out = base / "logprobs.npz", base / "steps.json"
    np.savez(logprobs, *world[1])
    run_ranks(_RANK, base, logprobs, out)
    for found in json.loads(out.read_text()):
        agree(found, alone)
