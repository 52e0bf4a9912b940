"""Every loss with everything that is added to it: against plain loops, by its gradient, and however the step is split."""

import doctest
from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import trainer.losses
from schemas.extensions import LOSSES
from schemas.objective_config import Aggregation, KlType, ObjectiveConfig, RejectionLevel, WeightLevel
from tests.support.training import loss_oracles, ragged
from tests.support.training.loss_oracles import Sequence64
from trainer.engine.dealing import deal
from trainer.items import Item
from trainer.objective.policy_objective import PolicyObjective
from trainer.ports import StepResult
from trainer.token_losses import Outputs
from trainer.token_losses.value_loss import ValueLoss
from trainer.training_metrics import TrainingMetrics

MODES: tuple[Aggregation, ...] = get_args(Aggregation)
EVERYTHING: dict[str, object] = {
    "clip_ratio_low": 0.15,
    "clip_ratio_high": 0.3,
    "clip_ratio_c": 1.5,
    "kl_loss_coef": 0.3,
    "entropy_coeff": 0.1,
    "early_stop_imp_ratio": 1.3,
    "behaviour_weight_cap": 2.0,
    "importance_weight_cap": 1.3,
    "loss_scale_factor": 5.0,
    "importance_weight_level": "sequence-mean",
    "proximal": "interpolated",
    "rejection_level": "sequence-max",
    "rejection_low": 0.3,
    "rejection_high": 3.0,
    "settings": {"tv_low": 0.05, "tv_high": 0.04, "tv_kl_coef": 0.1},
}
REJECTIONS: list[dict[str, object]] = [
    {"rejection_level": level, "rejection_kind": kind, "rejection_high": high, "rejection_low": low}
    for level in get_args(RejectionLevel)
    for kind, low, high in (("k1", 0.5, 1.8), ("k1", 0.0, 2.5), ("k2", 0.0, 0.1), ("k3", 0.0, 0.15))
]
STOPS_GRADIENTS = ("cispo", "gspo")
"""Losses with weights that no gradient passes through: differences of their values know nothing of that."""


def step(
    sequences: Sequence[Sequence64], parts: Sequence[Sequence[int]], config: ObjectiveConfig
) -> tuple[float, np.ndarray, dict[str, float]]:
    """The loss, its gradient by the log-probabilities and the metrics' sums of a step in these micro-batches of sequences."""
    items = ragged.items(sequences, config.loss_agg_mode, config.loss_scale_factor)
    objective = PolicyObjective(config)
    total, metrics = 0.0, dict[str, float]()
    gradients = [np.zeros(len(s.mask)) for s in sequences]
    for part in parts:
        targets = ragged.targets([items[index] for index in part])
        mine = [sequences[index] for index in part]
        logprobs = torch.from_numpy(ragged.concatenated(mine, "logprobs")).requires_grad_()
        token = objective(Outputs(logprobs, torch.from_numpy(ragged.concatenated(mine, "entropies"))), targets)
        loss = (token.losses * targets.weights).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
        assert logprobs.grad is not None
        ends = np.cumsum([len(s.mask) for s in mine])[:-1]
        for index, found in zip(part, np.split(logprobs.grad.numpy(), ends), strict=True):
            gradients[index] += found
        for name, values in token.metrics.items():
            metrics[name] = metrics.get(name, 0.0) + float((values * targets.trained).sum())
    return total, np.concatenate(gradients), metrics


def test_a_loss_can_be_called_alone() -> None:
    found = doctest.testmod(trainer.losses)
    assert (found.attempted > 4, found.failed) == (True, 0)


def whole(sequences: Sequence[Sequence64]) -> list[list[int]]:
    return [list(range(len(sequences)))]


@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES.builtin),
    st.sampled_from(MODES),
    st.sampled_from(get_args(KlType)),
    st.sets(st.sampled_from(sorted(EVERYTHING))),
    st.sampled_from(REJECTIONS),
    st.sampled_from(get_args(WeightLevel)),
)
def test_every_objective_equals_plain_loops(
    seed: int,
    loss: str,
    mode: Aggregation,
    kind: KlType,
    keys: set[str],
    rejection: dict[str, object],
    level: WeightLevel,
) -> None:
    chosen = {key: EVERYTHING[key] for key in keys} | rejection | {"importance_weight_level": level}
    config = ragged.objective(loss, loss_agg_mode=mode, kl_loss_type=kind, **chosen)
    sequences = ragged.sequences(seed)
    found, _, _ = step(sequences, whole(sequences), config)
    assert found == pytest.approx(loss_oracles.step_loss(sequences, config), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loss", LOSSES.builtin)
def test_gradients_are_the_slopes_of_plain_loops(loss: str, mode: Aggregation) -> None:
    """With everything on. The seeds' ratios stand clear of the bounds, where there is no slope."""
    config = ragged.objective(loss, loss_agg_mode=mode, kl_loss_type="abs+", **EVERYTHING)
    for seed in range(3):
        sequences = ragged.sequences(seed, num=5)
        _, gradient, _ = step(sequences, whole(sequences), config)
        at = ragged.concatenated(sequences, "logprobs")
        slopes = loss_oracles.slopes(lambda x, s=sequences: loss_oracles.step_loss(ragged.with_logprobs(s, x), config, s), at)  # type: ignore[misc]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)
        assert np.abs(gradient).max() > 0


@pytest.mark.parametrize("loss", [loss for loss in LOSSES.builtin if loss not in STOPS_GRADIENTS])
def test_autograd_agrees_with_differences(loss: str) -> None:
    config = ragged.objective(loss, **EVERYTHING | {"proximal": "forward"})
    sequences = ragged.sequences(1, num=4)
    targets = ragged.targets(ragged.items(sequences))
    entropies = torch.from_numpy(ragged.concatenated(sequences, "entropies")).requires_grad_()
    logprobs = torch.from_numpy(ragged.concatenated(sequences, "logprobs")).requires_grad_()
    objective = PolicyObjective(config)

    def total(logprobs: torch.Tensor, entropies: torch.Tensor) -> torch.Tensor:
        return (objective(Outputs(logprobs, entropies), targets).losses * targets.weights).sum()

    assert torch.autograd.gradcheck(total, (logprobs, entropies))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loss", LOSSES.builtin)
def test_the_step_is_the_same_however_it_is_split(loss: str, mode: Aggregation) -> None:
    """Random micro-batches, and the dealing of 1 and 2 ranks by 1, 3 and 7: loss, gradient and every figure."""
    config = ragged.objective(loss, loss_agg_mode=mode, **EVERYTHING)
    sequences = ragged.sequences(11, num=8)
    expected = step(sequences, whole(sequences), config)
    items = ragged.items(sequences, config.loss_agg_mode, config.loss_scale_factor)
    places = {item.sample.ref.step: index for index, item in enumerate(items)}
    splits = [_random_split(len(sequences), seed) for seed in range(5)]
    for num_ranks in (1, 2):
        for size in (1, 3, 7):
            shares = deal(items, num_ranks=num_ranks, micro_batch=size, idle=items[0].idle)
            splits.append(
                [[places[item.sample.ref.step] for item in part if _counts(item)] for share in shares for part in share]
            )
    for parts in splits:
        loss_value, gradient, metrics = step(sequences, [part for part in parts if part], config)
        assert loss_value == pytest.approx(expected[0], rel=1e-9)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-12)
        assert metrics == pytest.approx(expected[2], rel=1e-9)


def _counts(item: Item) -> bool:
    return bool(item.targets.weights.any())


def _random_split(num: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    order, owners = rng.permutation(num), rng.integers(0, 3, num)
    return [found for owner in range(3) if (found := [int(i) for i in order if owners[i] == owner])]


def tokens(config: ObjectiveConfig, **arrays: Sequence[float]) -> tuple[list[float], list[float], dict[str, list[float]]]:
    """Losses, gradients and metrics of one sequence whose tokens are all trained on; what is not given is zero."""
    length = len(next(iter(arrays.values())))
    given = {name: np.array(values, dtype=np.float64) for name, values in arrays.items()}
    zeros = {name: np.zeros(length) for name in ("logprobs", "entropies", *ragged.TARGETS)}
    sequence = Sequence64(mask=np.ones(length), **zeros | given)
    logprobs = torch.from_numpy(sequence.logprobs).requires_grad_()
    token = PolicyObjective(config)(Outputs(logprobs), ragged.targets(ragged.items([sequence])))
    token.losses.sum().backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    return token.losses.tolist(), logprobs.grad.tolist(), {name: found.tolist() for name, found in token.metrics.items()}


def test_gspo_clips_whole_sequences() -> None:
    """Ratios 1.5 and 1: their geometric mean, 1.22, is above 1.1: no token has a gradient, though one did not move."""
    moved = {"logprobs": np.log([1.5, 1.0]).tolist()}
    _, free, metrics = tokens(ragged.objective("gspo", clip_ratio_high=0.3), advantages=[1.0, 1.0], **moved)
    assert metrics["clipped_high"] == [0, 0]
    assert free == pytest.approx([-(1.5**0.5)] * 2)
    _, clipped, metrics = tokens(ragged.objective("gspo", clip_ratio_high=0.1), advantages=[1.0, 1.0], **moved)
    assert (clipped, metrics["clipped_high"]) == ([0.0, 0.0], [1, 1])


def test_cispo_clips_the_weight_and_keeps_the_gradient() -> None:
    _, gradient, metrics = tokens(ragged.objective("cispo"), advantages=[1.0, -1.0], logprobs=np.log([2.0, 0.5]).tolist())
    assert gradient == pytest.approx([-1.2, 0.8])
    assert (metrics["clipped_high"], metrics["clipped_low"]) == ([1, 0], [0, 1])


def test_dppo_goes_by_the_difference_of_probabilities() -> None:
    """A rare token may become five times as likely (0.01 to 0.05); a frequent one may not gain 0.3 (0.5 to 0.8)."""
    config = ragged.objective("dppo_tv", settings={"tv_kl_coef": 0.0})
    arrays = {"behaviour": np.log([0.01, 0.5]).tolist(), "logprobs": np.log([0.05, 0.8]).tolist()}
    losses, gradient, metrics = tokens(config, advantages=[1.0, 1.0], **arrays)
    assert losses == pytest.approx([-5.0, 0.0])
    assert gradient == pytest.approx([-5.0, 0.0])
    assert metrics["clipped_high"] == [0, 1]


def test_a_sequence_that_the_sampler_saw_too_differently_contributes_nothing() -> None:
    """Products of ratios 2 * 1.2 and 0.5 * 0.9, bounds 0.5 and 2: both sequences are out; by their means neither is."""
    zeros = {name: np.zeros(2) for name in ("entropies", *ragged.TARGETS)}
    both = [
        Sequence64(mask=np.ones(2), logprobs=np.log(ratios), **zeros | {"advantages": np.ones(2)})
        for ratios in ([2.0, 1.2], [0.5, 0.9])
    ]
    bounds = {"rejection_low": 0.5, "rejection_high": 2.0}
    _, gradient, metrics = step(both, [[0, 1]], ragged.objective("clipped", rejection_level="sequence-sum", **bounds))
    assert (gradient.tolist(), metrics["rejected_tokens"]) == ([0.0] * 4, 4)
    _, gradient, metrics = step(both, [[0, 1]], ragged.objective("clipped", rejection_level="sequence-mean", **bounds))
    assert (np.abs(gradient).max() > 0, metrics["rejected_tokens"]) == (True, 0)


def test_a_fresh_token_is_its_own_anchor_and_an_old_one_lies_between() -> None:
    """0 and 1 versions old, moved by ln 4: the ratio to the guessed anchor is 4, and 2."""
    config = ragged.objective("truncated", proximal="interpolated", clip_ratio_high=9.0, importance_weight_cap=9.0)
    moved = np.log([4.0, 4.0]).tolist()
    losses, gradient, metrics = tokens(config, advantages=[1.0, 1.0], logprobs=moved, staleness=[0.0, 1.0])
    assert losses == pytest.approx([-4.0, -2.0 * 2.0])
    assert gradient == pytest.approx([-4.0, -4.0]), "no gradient passes through the anchor"
    assert metrics["kl_proximal"] == pytest.approx([4 - 1 - np.log(4), 2 - 1 - np.log(2)])


def test_at_the_old_policy_the_gradient_is_the_policy_gradient() -> None:
    config = ragged.objective("clipped")
    losses, gradient, metrics = tokens(config, advantages=[2.0, -1.0], logprobs=[-1.0, -3.0], behaviour=[-1.0, -3.0])
    assert losses == [-2.0, 1.0]
    assert gradient == [-2.0, 1.0]
    assert metrics["ratio"] == [1.0, 1.0]
    assert metrics["kl_behaviour"] == [0.0, 0.0]


def test_the_clip_is_asymmetric_and_stops_the_gradient() -> None:
    """Ratios 1.25, 1.35 and 0.75 with 1 - 0.2 and 1 + 0.3."""
    config = ragged.objective("clipped", clip_ratio_high=0.3)
    moved = np.log([1.25, 1.35, 0.75]).tolist()
    losses, gradient, metrics = tokens(config, advantages=[1.0, 1.0, -1.0], logprobs=moved)
    assert losses == pytest.approx([-1.25, -1.3, 0.8])
    assert gradient == pytest.approx([-1.25, 0.0, 0.0])
    assert (metrics["clipped_high"], metrics["clipped_low"]) == ([0, 1, 0], [0, 0, 1])
    assert "kl_proximal" not in metrics


def test_the_dual_clip_bounds_what_a_bad_token_costs() -> None:
    config = ragged.objective("clipped", clip_ratio_c=3.0)
    losses, gradient, metrics = tokens(config, advantages=[-2.0, -2.0], logprobs=np.log([10.0, 2.0]).tolist())
    assert losses == pytest.approx([6.0, 4.0])
    assert gradient == pytest.approx([0.0, 4.0])
    assert metrics["dual_clipped"] == [1, 0]


def test_decoupled_leaves_out_what_truncated_holds_to_the_cap() -> None:
    """Weights 4 and 8, caps 5 and 5: left out is 0, held is 5; the ratio to the proximal policy is 1."""
    arrays = {"advantages": [1.0, 1.0], "logprobs": np.log([4.0, 8.0]).tolist(), "proximal": np.log([4.0, 8.0]).tolist()}
    losses, gradient, metrics = tokens(ragged.objective("decoupled"), **arrays)
    assert losses == pytest.approx([-4.0, 0.0])
    assert gradient == pytest.approx([-4.0, 0.0])
    assert metrics["dropped_tokens"] == [0, 1]
    losses, gradient, metrics = tokens(ragged.objective("truncated", importance_weight_cap=5.0), **arrays)
    assert losses == pytest.approx([-4.0, -5.0])
    assert gradient == pytest.approx([-4.0, -5.0])
    assert metrics["truncated_weights"] == [0, 1]
    assert metrics["ratio"] == pytest.approx([4.0, 8.0])
    assert metrics["kl_proximal"] == pytest.approx([0.0, 0.0])


def test_weighted_cloning_is_cloning_where_the_policies_agree() -> None:
    agreed = {"logprobs": [-1.0, -2.0], "proximal": [-1.0, -2.0], "behaviour": [-1.0, -2.0]}
    _, cloned, _ = tokens(ragged.objective("behaviour_cloning"), **agreed)
    _, weighted, _ = tokens(ragged.objective("weighted_cloning"), **agreed)
    assert weighted == cloned == [-1.0, -1.0]


def test_a_sequence_that_moved_too_far_contributes_nothing() -> None:
    """Mean ratio 2.5 above 2: neither loss nor divergence nor entropy; another sequence of the micro-batch stays."""
    config = ragged.objective("clipped", early_stop_imp_ratio=2.0, kl_loss_coef=1.0, kl_loss_type="mse")

    def one(ratios: Sequence[float], mask: Sequence[float]) -> Sequence64:
        zeros = {name: np.zeros(len(ratios)) for name in ("entropies", *ragged.TARGETS)}
        return Sequence64(mask=np.array(mask), logprobs=np.log(ratios), **zeros | {"advantages": np.ones(len(ratios))})

    near, far = one([1.1, 1.0, 50.0], [1, 1, 0]), one([1.0, 4.0], [1, 1])
    _, gradient, metrics = step([near, far], [[0, 1]], config)
    assert gradient[3:].tolist() == [0.0, 0.0]
    assert np.abs(gradient[:2]).min() > 0
    assert metrics["stopped_tokens"] == 2


def test_figures_do_not_take_part_in_the_gradient() -> None:
    for loss in LOSSES.builtin:
        sequences = ragged.sequences(5, num=3)
        logprobs = torch.from_numpy(ragged.concatenated(sequences, "logprobs")).requires_grad_()
        outputs = Outputs(logprobs, torch.zeros_like(logprobs))
        token = PolicyObjective(ragged.objective(loss, **EVERYTHING))(outputs, ragged.targets(ragged.items(sequences)))
        assert not any(values.requires_grad for values in token.metrics.values())
        assert all(values.shape == logprobs.shape for values in token.metrics.values())


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODES), st.sampled_from([0.0, 0.2]))
def test_the_critics_loss_equals_plain_loops(seed: int, mode: Aggregation, clip: float) -> None:
    sequences = ragged.sequences(seed)
    targets = ragged.targets(ragged.items(sequences, mode, 1.0))
    critic = np.random.default_rng(seed).normal(size=len(targets.returns))
    found = (ValueLoss(clip)(torch.from_numpy(critic), targets).losses * targets.weights).sum()
    assert float(found) == pytest.approx(loss_oracles.value_loss(sequences, critic, clip, mode), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("clip", [0.0, 0.2])
def test_the_critics_gradient(clip: float) -> None:
    sequences = ragged.sequences(3, num=4)
    targets = ragged.targets(ragged.items(sequences))
    critic = torch.from_numpy(np.random.default_rng(3).normal(size=len(targets.returns))).requires_grad_()
    assert torch.autograd.gradcheck(lambda values: ValueLoss(clip)(values, targets).losses, critic)


def test_the_effective_share_of_samples_is_told_by_the_ratios() -> None:
    """Ratios 1 and 3: (1 + 3)^2 / (2 * (1 + 9)) = 0.8."""
    _, _, metrics = tokens(ragged.objective("clipped"), advantages=[0.0, 0.0], logprobs=np.log([1.0, 3.0]).tolist())
    collected = TrainingMetrics()
    means = {name: float(np.mean(values)) for name, values in metrics.items()}
    collected.add(StepResult(0.0, 0.0, 0.0, 2, means), 1)
    assert collected.means()["effective_samples"] == pytest.approx(0.8)
