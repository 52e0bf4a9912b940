"""PPO with truncated importance sampling: corrects what differs between the sampler's and the trainer's log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.losses import TokenLosses, loss
from trainer.objective.ratios import importance_ratio
from trainer.objective.surrogate import Surrogate

if TYPE_CHECKING:
    import torch

    from trainer.model.batches import Batch


@loss("truncated", ratio=True, proximal=True)
@dataclass(frozen=True, kw_only=True)
class Truncated(Surrogate):
    """w * surrogate(pi / pi_proximal), with w = min(pi_proximal / pi_behaviour, cap), which no gradient passes through."""

    importance_weight_cap: float = 2.0

    def __call__(self, logprobs: torch.Tensor, batch: Batch) -> TokenLosses:
        near = self.surrogate(importance_ratio(logprobs, batch.proximal), batch.advantages)
        weights = importance_ratio(batch.proximal, batch.behaviour)
        metrics = {**near.metrics, "truncated_weights": (weights > self.importance_weight_cap).to(near.losses.dtype)}
        return TokenLosses(near.losses * weights.clamp(max=self.importance_weight_cap), metrics, near.ratios)
