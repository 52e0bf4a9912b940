"""The order in which an epoch trains on its samples. Pure: seeds and numbers in, indices out."""

import numpy as np


def training_order(count: int, step_size: int, *, seed: int, iteration: int, epoch: int) -> list[np.ndarray]:
    """Shuffled indices of one epoch, cut into optimizer steps of nearly equal size, none above `step_size`."""
    order = np.random.default_rng((seed, iteration, epoch)).permutation(count)
    return np.array_split(order, -(-count // step_size)) if count else []
