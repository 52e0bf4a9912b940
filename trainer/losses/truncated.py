"""PPO with truncated importance sampling: corrects what differs between the sampler's and the trainer's log-probabilities."""

from dataclasses import dataclass

import torch

from trainer.losses import TokenLosses
from trainer.losses.ratios import importance_ratio
from trainer.losses.surrogate import Surrogate
from trainer.model.batches import Batch


@dataclass(frozen=True)
class Truncated:
    """w * surrogate(pi / pi_proximal), with w = min(pi_proximal / pi_behaviour, cap), which no gradient passes through."""

    surrogate: Surrogate
    weight_cap: float = 2.0

    def __call__(self, logprobs: torch.Tensor, batch: Batch) -> TokenLosses:
        near = self.surrogate(importance_ratio(logprobs, batch.proximal), batch.advantages)
        weights = importance_ratio(batch.proximal, batch.behaviour)
        figures = {**near.figures, "truncated_weights": (weights > self.weight_cap).to(near.losses.dtype)}
        return TokenLosses(near.losses * weights.clamp(max=self.weight_cap), figures, near.ratios)
