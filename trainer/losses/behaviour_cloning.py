"""Filtered behaviour cloning: the negative log-likelihood of what successful episodes did (WebGym, RAFT)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.losses import TokenLosses, loss

if TYPE_CHECKING:
    import torch

    from trainer.model.batches import Batch


@loss("behaviour_cloning", imitates=True)
def behaviour_cloning(logprobs: torch.Tensor, batch: Batch) -> TokenLosses:
    """Which samples count is decided before they get here."""
    del batch
    return TokenLosses(-logprobs)
