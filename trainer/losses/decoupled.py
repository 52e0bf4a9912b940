"""Decoupled PPO: held near the policy at the start of the update, weighted against the sampler (AReaL, AsyncWebRL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.losses import loss
from trainer.token_losses import TokenLosses, TokenTargets
from trainer.token_losses.importance_weights import ImportanceWeights
from trainer.token_losses.ratios import importance_ratio
from trainer.token_losses.surrogate import Surrogate

if TYPE_CHECKING:
    import torch


@loss("decoupled", ratio=True, proximal=True, skips_zero_advantage=True, augments=True)
@dataclass(frozen=True, kw_only=True)
class Decoupled(Surrogate, ImportanceWeights):
    """w * surrogate(pi / pi_proximal), with w = pi_proximal / pi_behaviour; tokens with w above the cap have loss 0.

    They are left out rather than held to the cap, and stay in the count that the loss is divided by.
    """

    behaviour_weight_cap: float = 5.0

    def __call__(self, logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        near = self.surrogate(importance_ratio(logprobs, targets.proximal), targets.advantages)
        weights = self.weights(targets)
        dropped = weights > self.behaviour_weight_cap
        losses = near.losses * weights.masked_fill(dropped, 0.0)
        return TokenLosses(losses, {**near.metrics, "dropped_tokens": dropped.to(losses.dtype)}, near.ratios)
