"""The critic's loss: half the squared error towards the return, from the clipped value where that is further away (PPO)."""

import torch

from trainer.batches import Batch
from trainer.losses import TokenLosses


def value_loss(values: torch.Tensor, batch: Batch, *, clip: float) -> TokenLosses:
    """`values`: float32, (N,); `clip`: how far a value may move from `batch.values`, 0 for any distance."""
    errors = (values - batch.returns) ** 2
    figures = {"value": values.detach()}
    if clip > 0:
        moved = batch.values + (values - batch.values).clamp(-clip, clip)
        clipped = (moved - batch.returns) ** 2
        figures["value_clipped"] = (clipped > errors).float().detach()
        errors = torch.maximum(errors, clipped)
    return TokenLosses(0.5 * errors, figures)
