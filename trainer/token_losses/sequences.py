"""Adds up token values by sequence, over the tokens that are trained on.

A sequence is never cut by micro-batches, so that what is decided by it does not depend on the split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from trainer.token_losses import TokenTargets


def sequence_sums(values: torch.Tensor, targets: TokenTargets) -> torch.Tensor:
    """(N,): of every token, the sum over its sequence."""
    # A sequence has a token at least, so that N places are enough, and no count has to come back from the device.
    empty = values.new_zeros(values.shape)
    return empty.index_add(0, targets.sequences, values * targets.trained)[targets.sequences]


def sequence_means(values: torch.Tensor, targets: TokenTargets) -> torch.Tensor:
    """(N,): of every token, the mean over its sequence; 0 where none of its tokens is trained on."""
    counts = sequence_sums(values.new_ones(values.shape), targets)
    return sequence_sums(values, targets) / counts.clamp(min=1.0)


def sequence_maxima(values: torch.Tensor, targets: TokenTargets) -> torch.Tensor:
    """(N,): of every token, the largest value of its sequence; minus infinity where none of its tokens is trained on."""
    lowest = values.new_full(values.shape, float("-inf"))
    counted = values.where(targets.trained > 0, lowest)
    return lowest.scatter_reduce(0, targets.sequences, counted, "amax")[targets.sequences]
