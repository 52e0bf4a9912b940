"""Aggregates token losses into one loss: the share that every token has in the whole optimizer step.

The loss of a step is the sum of weight * token loss over all its tokens, wherever they are computed. The weights come from the
whole step's counts, so that the loss does not depend on how it is split over micro-batches and ranks.
"""

from collections.abc import Sequence

import numpy as np

from schemas.objective_config import Aggregation


def token_weights(
    masks: Sequence[np.ndarray], mode: Aggregation = "token-mean", *, scale_factor: float = 1024.0
) -> list[np.ndarray]:
    """The weight of every token of every sequence, float64, shaped like `masks` (1: trained on, 0: not).

    token-mean: 1 / all trained tokens. seq-mean-token-sum: 1 / sequences. seq-mean-token-mean: 1 / (sequences * the sequence's
    trained tokens). seq-mean-token-sum-norm: 1 / (sequences * `scale_factor`). Sequences without a trained token do not count.
    """
    counts = [float(mask.sum()) for mask in masks]
    num_sequences = sum(count > 0 for count in counts)
    match mode:
        case "token-mean":
            divisors = [sum(counts)] * len(counts)
        case "seq-mean-token-sum":
            divisors = [float(num_sequences)] * len(counts)
        case "seq-mean-token-mean":
            divisors = [num_sequences * count for count in counts]
        case "seq-mean-token-sum-norm":
            divisors = [num_sequences * scale_factor] * len(counts)
    return [
        mask.astype(np.float64) / divisor if divisor else np.zeros(len(mask))
        for mask, divisor in zip(masks, divisors, strict=True)
    ]
