"""Whitening: mean 0 and variance 1 over all trained tokens of an iteration."""

from collections.abc import Sequence

import numpy as np

from trainer.advantages import Steps
from trainer.advantages.tokens import joined

_EPSILON = 1e-8
"""Added to the variance: tokens that are all worth the same are worth 0."""


def whitened(episodes: Sequence[Steps]) -> list[Steps]:
    """(x - mean) / sqrt(variance + 1e-8); mean and population variance are those of all tokens given."""
    tokens = joined(tuple(step for steps in episodes for step in steps))
    if not len(tokens):
        return list(episodes)
    scale = 1.0 / np.sqrt(tokens.var() + _EPSILON)
    return [tuple((step - tokens.mean()) * scale for step in steps) for steps in episodes]
