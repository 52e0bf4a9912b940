"""GSPO: the clipped surrogate of whole sequences (Qwen)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.losses import loss
from trainer.token_losses import TokenLosses, TokenTargets
from trainer.token_losses.ratios import ratio_of
from trainer.token_losses.sequences import sequence_means
from trainer.token_losses.surrogate import Surrogate

if TYPE_CHECKING:
    import torch


@loss("gspo", ratio=True, skips_zero_advantage=True)
@dataclass(frozen=True, kw_only=True)
class Gspo(Surrogate):
    """s = (pi / pi_behaviour of the sequence) ^ (1 / its tokens) is clipped in place of each token's own ratio.

    A token's ratio is s pi / sg(pi): all of a sequence have the value s, and each its own gradient, which is that of s where
    all have one advantage, and serves those that have not (GSPO-token). The bounds are to be small: 3e-4 and 4e-4 are usual.
    """

    def __call__(self, logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        now = logprobs.detach()
        of_sequence = sequence_means(now - targets.behaviour, targets)
        return self.surrogate(ratio_of(of_sequence) * (logprobs - now).exp(), targets.advantages)
