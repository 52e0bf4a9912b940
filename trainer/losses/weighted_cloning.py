"""Filtered behaviour cloning with an importance weight (RAFT++)."""

from dataclasses import dataclass, replace

import torch

from trainer.losses import TokenLosses
from trainer.losses.truncated import Truncated
from trainer.model.batches import Batch


@dataclass(frozen=True)
class WeightedCloning:
    """The truncated loss with advantage 1: -w * min(rho, 1 + high), with rho = pi / pi_proximal.

    RAFT++ is PPO's loss with advantage 1 for every successful episode. Replayed ones may come from policies several versions
    back, which w = min(pi_proximal / pi_behaviour, cap) allows for. At rho = 1 its gradient is w times that of cloning.
    """

    truncated: Truncated

    def __call__(self, logprobs: torch.Tensor, batch: Batch) -> TokenLosses:
        return self.truncated(logprobs, replace(batch, advantages=torch.ones_like(batch.advantages)))
