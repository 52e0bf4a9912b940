"""PPO against the policies that sampled the tokens."""

from dataclasses import dataclass

import torch

from trainer.losses import TokenLosses
from trainer.losses.ratios import importance_ratio
from trainer.losses.surrogate import Surrogate
from trainer.model.batches import Batch


@dataclass(frozen=True)
class Clipped:
    """rho = pi / pi_behaviour: the sampler's own log-probabilities are all it needs."""

    surrogate: Surrogate

    def __call__(self, logprobs: torch.Tensor, batch: Batch) -> TokenLosses:
        return self.surrogate(importance_ratio(logprobs, batch.behaviour), batch.advantages)
