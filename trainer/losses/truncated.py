"""PPO with truncated importance sampling: corrects what differs between the sampler's and the trainer's log-probabilities."""

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


@loss("truncated", ratio=True, proximal=True, skips_zero_advantage=True, augments=True)
@dataclass(frozen=True, kw_only=True)
class Truncated(Surrogate, ImportanceWeights):
    """w * surrogate(pi / pi_proximal), with w = min(pi_proximal / pi_behaviour, cap), which no gradient passes through."""

    importance_weight_cap: float = 2.0

    def __call__(self, logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        near = self.surrogate(importance_ratio(logprobs, targets.proximal), targets.advantages)
        weights = self.weights(targets)
        metrics = {**near.metrics, "truncated_weights": (weights > self.importance_weight_cap).to(near.losses.dtype)}
        return TokenLosses(near.losses * weights.clamp(max=self.importance_weight_cap), metrics, near.ratios)
