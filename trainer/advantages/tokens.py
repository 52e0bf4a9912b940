"""An episode's steps as one row of tokens, and back.

Observations are not in the row. That is the same as carrying value and advantage through them unchanged, as formulas over
whole conversations do: the last token of a step is followed by the first of the next one.
"""

import numpy as np

from trainer.advantages import Steps


def joined(steps: Steps) -> np.ndarray:
    """float64, (tokens,)."""
    return np.concatenate([*steps, np.zeros(0)])


def parted(row: np.ndarray, like: Steps) -> Steps:
    """The row, cut where the steps of `like` end."""
    ends = np.cumsum([len(step) for step in like], dtype=np.int64)
    return tuple(np.split(row, ends)[: len(like)])


def spread(value: float, like: Steps) -> Steps:
    """The same for every token."""
    return tuple(np.full(len(step), value) for step in like)


def discounted_sums(row: np.ndarray, factor: float | np.ndarray) -> np.ndarray:
    """y_t = x_t + factor_t * y_{t+1}, and nothing behind the end."""
    sums, factors = np.zeros(len(row)), np.broadcast_to(factor, len(row))
    later = 0.0
    for index in range(len(row) - 1, -1, -1):
        later = sums[index] = row[index] + factors[index] * later
    return sums
