"""Recomputes peers' losses, and the parts of losses, with those here, in float64."""

from collections.abc import Mapping
from typing import cast, get_args

import numpy as np
import torch

from schemas.ids import EpisodeId
from schemas.objective_config import Aggregation, KlType, ObjectiveConfig
from tests.numeric.cases import Case, Outcome
from tests.numeric.peer_settings import changes, icepop, rejections
from trainer.objective.aggregation import token_weights
from trainer.objective.policy_objective import PolicyObjective
from trainer.objective.proximal import interpolated_proximal
from trainer.objective.rejection import rejected
from trainer.token_losses import Outputs, TokenTargets
from trainer.token_losses.importance_weights import ImportanceWeights
from trainer.token_losses.kl import divergence
from trainer.token_losses.value_loss import ValueLoss

LOSSES: Mapping[str, str] = {
    "clipped": "clipped",
    "truncated": "truncated",
    "decoupled": "decoupled",
    "gspo": "gspo",
    "cispo": "cispo",
    "reinforce": "cispo",
    "dppo_tv": "dppo_tv",
    "aggregation:token-mean": "clipped",
    "aggregation:seq-mean-token-sum": "clipped",
    "aggregation:seq-mean-token-mean": "clipped",
    "aggregation:seq-mean-token-sum-norm": "clipped",
}
"""By the piece of a case; the peers' settings are in `peer_settings`."""
KL_PIECES = tuple(f"kl:{kind}" for kind in get_args(KlType))
UNDER = {
    "verl": "old_log_prob",
    "AReaL": "proximal_logprobs",
    "RLinf": "old_logprobs",
    "TRL": "old_per_token_logps",
    "prime-rl": "inference_logprobs",
}
"""What the ratio is taken to: the peers' names of what is `behaviour` here, for losses without a proximal policy."""
_WEIGHTED = ("truncated", "decoupled")
"""Those with a proximal policy."""


def policy_loss(case: Case) -> Outcome:
    config = ObjectiveConfig(loss_type=LOSSES[case.piece], adv_estimator="grpo", group_size=2, **changes(case))
    targets = targets_of(case, config.loss_agg_mode, config.loss_scale_factor)
    logprobs = torch.from_numpy(case.column("logprobs")).requires_grad_()
    losses = PolicyObjective(config)(Outputs(logprobs), targets).losses
    return _summed("loss", losses * targets.weights, logprobs)


def value_loss(case: Case) -> Outcome:
    settings = case.settings
    clip = next(settings[name] for name in ("cliprange_value", "value_eps_clip", "value_clip") if name in settings)
    targets = targets_of(case, settings.get("loss_agg_mode", "token-mean"))
    critic = torch.from_numpy(case.column("critic")).requires_grad_()
    return _summed("loss", ValueLoss(clip)(critic, targets).losses * targets.weights, critic)


def kl(case: Case) -> Outcome:
    """Of the tokens that are trained on."""
    trained = targets_of(case).trained
    logprobs = torch.from_numpy(case.column("logprobs")).requires_grad_()
    apart = logprobs - torch.from_numpy(case.column("reference"))
    tokens = divergence(apart, cast(KlType, case.piece.removeprefix("kl:"))) * trained
    return _summed("", tokens, logprobs) | {"token_values": tokens.detach().numpy()}


def importance_weights(case: Case) -> Outcome:
    settings, targets = case.settings, targets_of(case)
    if case.peer == "AReaL":
        level, held, bounds = settings["level"], settings["upper"], None
    else:
        level, bounds = settings["rollout_is"], icepop(case)
        held = None if bounds else settings["rollout_is_threshold"]
    weights = ImportanceWeights(importance_weight_level=level).weights(targets)
    if bounds:
        by, kind, low, high = bounds
        weights = weights.masked_fill(rejected(_log_ratios(targets), targets, by, kind, low=low, high=high), 0.0)
    return {"weights": (weights.clamp(max=held) if held else weights).mul(targets.trained).numpy()}


def rejection(case: Case) -> Outcome:
    """`kept`: 1 for what is trained on. `weights`: of that; by sequence, AReaL's ratio is the geometric mean."""
    targets = targets_of(case)
    kept = targets.trained
    for level, kind, low, high in rejections(case):
        kept = kept.masked_fill(rejected(_log_ratios(targets), targets, level, kind, low=low, high=high), 0.0)
    by_sequence = case.settings.get("level") == "sequence" and case.settings["metric"] == "ratio"
    weights = ImportanceWeights(importance_weight_level="sequence-mean" if by_sequence else "token").weights(targets)
    return {"kept": kept.numpy(), "weights": (weights * kept).numpy()}


def proximal(case: Case) -> Outcome:
    return {"proximal": interpolated_proximal(torch.from_numpy(case.column("logprobs")), targets_of(case)).numpy()}


def targets_of(case: Case, mode: Aggregation = "token-mean", scale_factor: float = 1024.0) -> TokenTargets:
    given = {
        name: torch.from_numpy(case.column(name))
        for name in ("advantages", "behaviour", "proximal", "reference", "values", "returns")
        if case.has(name)
    }
    under = case.settings.get(UNDER.get(case.peer, ""))
    if under and case.has("logprobs") and case.piece not in _WEIGHTED:
        given["behaviour"] = torch.from_numpy(case.column(under))
    if case.has("versions") and "current_version" in case.settings:
        given["staleness"] = torch.from_numpy(_staleness(case))
    masks = [np.array(row["mask"], dtype=np.float64) for row in case.rows]
    whole = [*masks, *_rest_of_step(case)]
    episodes = [EpisodeId(f"e{index}") for index in range(len(whole))]
    weights = token_weights(whole, mode, scale_factor=scale_factor, episodes=episodes)[: len(masks)]
    sequences = np.repeat(np.arange(len(masks)), [len(mask) for mask in masks])
    flat_weights = torch.from_numpy(np.concatenate(weights))
    advantages = given.pop("advantages", torch.zeros_like(flat_weights)) * case.settings.get("adv_tau", 1.0)
    return TokenTargets.of(advantages, weights=flat_weights, sequences=torch.from_numpy(sequences), **given)


def _staleness(case: Case) -> np.ndarray:
    """`current_version` is the one that is being made: the update began at the one before. -1: a token nobody sampled."""
    versions = case.column("versions")
    return np.where(versions < 0, 0.0, np.maximum(case.settings["current_version"] - 1 - versions, 0.0))


def _rest_of_step(case: Case) -> list[np.ndarray]:
    """Masks of the sequences of the optimizer step that are computed elsewhere: peers are told their tokens and number."""
    settings = case.settings
    mine = int(case.column("mask").sum())
    if batch := settings.get("global_batch_info"):
        num = batch["global_batch_size"] - sum(any(row["mask"]) for row in case.rows)
        return [np.ones(1)] * (num - 1) + [np.ones(batch["batch_num_tokens"] - mine - (num - 1))]
    tokens = settings.get("num_items_in_batch") or settings.get("rl_scale") or mine
    return [np.ones(tokens - mine)] if tokens > mine else []


def _log_ratios(targets: TokenTargets) -> torch.Tensor:
    return targets.proximal - targets.behaviour


def _summed(name: str, tokens: torch.Tensor, by: torch.Tensor) -> dict[str, np.ndarray]:
    total = tokens.sum()
    total.backward()  # type: ignore[no-untyped-call]
    assert by.grad is not None
    return {name: np.array([total.item()]), "gradient": by.grad.numpy()}
