"""PPO against the policies that sampled the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.losses import loss
from trainer.token_losses import TokenLosses, TokenTargets
from trainer.token_losses.ratios import importance_ratio
from trainer.token_losses.surrogate import Surrogate

if TYPE_CHECKING:
    import torch


@loss("clipped", ratio=True, skips_zero_advantage=True)
@dataclass(frozen=True, kw_only=True)
class Clipped(Surrogate):
    """rho = pi / pi_behaviour: the sampler's own log-probabilities are all it needs."""

    def __call__(self, logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        return self.surrogate(importance_ratio(logprobs, targets.behaviour), targets.advantages)
