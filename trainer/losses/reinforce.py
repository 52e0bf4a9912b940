"""REINFORCE: advantages times log-probabilities, without any ratio (Williams 1992)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.losses import loss
from trainer.token_losses import TokenLosses, TokenTargets

if TYPE_CHECKING:
    import torch


@loss("reinforce", augments=True, skips_zero_advantage=True)
def reinforce(logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
    """It asks for no sampler's log-probabilities, and nothing holds it near the sampler: few passes, and fresh episodes."""
    return TokenLosses(-targets.advantages * logprobs)
