"""Filtered behaviour cloning: the negative log-likelihood of what successful episodes did (WebGym, RAFT)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.losses import loss
from trainer.token_losses import TokenLosses, TokenTargets

if TYPE_CHECKING:
    import torch


@loss("behaviour_cloning", imitates=True, augments=True)
def behaviour_cloning(logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
    """Which samples count is decided before they get here."""
    del targets
    return TokenLosses(-logprobs)
