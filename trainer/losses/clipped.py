"""PPO against the policies that sampled the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.losses import TokenLosses, loss
from trainer.objective.ratios import importance_ratio
from trainer.objective.surrogate import Surrogate

if TYPE_CHECKING:
    import torch

    from trainer.model.batches import Batch


@loss("clipped", ratio=True)
@dataclass(frozen=True, kw_only=True)
class Clipped(Surrogate):
    """rho = pi / pi_behaviour: the sampler's own log-probabilities are all it needs."""

    def __call__(self, logprobs: torch.Tensor, batch: Batch) -> TokenLosses:
        return self.surrogate(importance_ratio(logprobs, batch.behaviour), batch.advantages)
