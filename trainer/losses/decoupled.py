"""Decoupled PPO: held near the policy at the start of the update, weighted against the sampler (AReaL, AsyncWebRL)."""

from dataclasses import dataclass

import torch

from trainer.losses import TokenLosses
from trainer.losses.ratios import importance_ratio
from trainer.losses.surrogate import Surrogate
from trainer.model.batches import Batch


@dataclass(frozen=True)
class Decoupled:
    """w * surrogate(pi / pi_proximal), with w = pi_proximal / pi_behaviour; tokens with w above the cap have loss 0.

    They are left out rather than held to the cap, and stay in the count that the loss is divided by.
    """

    surrogate: Surrogate
    weight_cap: float = 5.0

    def __call__(self, logprobs: torch.Tensor, batch: Batch) -> TokenLosses:
        near = self.surrogate(importance_ratio(logprobs, batch.proximal), batch.advantages)
        weights = importance_ratio(batch.proximal, batch.behaviour)
        dropped = weights > self.weight_cap
        losses = near.losses * weights.masked_fill(dropped, 0.0)
        return TokenLosses(losses, {**near.figures, "dropped_tokens": dropped.to(losses.dtype)}, near.ratios)
