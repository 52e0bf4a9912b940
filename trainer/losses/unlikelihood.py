"""REINFORCE where the advantage is positive, unlikelihood where it is negative (Welleck et al. 2019, of whole answers)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.losses import loss
from trainer.token_losses import TokenLosses, TokenTargets
from trainer.token_losses.sequences import sequence_sums

if TYPE_CHECKING:
    import torch


@loss("unlikelihood", augments=True, skips_zero_advantage=True)
def unlikelihood(logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
    """-A log pi; where A is negative min(1, p / (1 - p)) times that, p being pi of the whole sequence, without its gradient.

    That is the gradient of A log(1 - p), as far as p is at most 1/2, beyond which it would grow without bound: an answer that
    is unlikely already is let alone, so that nothing is lost by pushing down one after the other.
    """
    whole = sequence_sums(logprobs.detach(), targets).exp()
    # Where the answer is certain, or by rounding more than that, it is 1 / 0: infinite.
    odds = (whole / (1.0 - whole).clamp(min=0.0)).clamp(max=1.0)
    held = odds.where(targets.advantages < 0, odds.new_ones(odds.shape))
    return TokenLosses(-held * targets.advantages * logprobs)
