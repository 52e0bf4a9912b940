"""Early stop: sequences whose policy has moved too far contribute nothing.

The mean is taken over one sequence, never over a micro-batch, so that what is left out does not depend on the split.
"""

import torch

from trainer.model.batches import Batch


def stopped(ratios: torch.Tensor, batch: Batch, threshold: float) -> torch.Tensor:
    """bool, (N,): whether the mean ratio over the trained tokens of a token's sequence is above `threshold`."""
    trained = batch.trained.to(ratios.dtype)
    # A sequence has a token at least, so that N places are enough, and no count has to come back from the device.
    empty = torch.zeros_like(ratios)
    counts = empty.index_add(0, batch.sequences, trained)
    sums = empty.index_add(0, batch.sequences, ratios * trained)
    return (sums > threshold * counts)[batch.sequences]
