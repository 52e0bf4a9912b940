"""Draws tasks by weight, without replacement."""

from collections.abc import Sequence

import numpy as np

from trainer.feeding.task_files import TaskSpec


def weighted_draw(
    specs: Sequence[TaskSpec], weights: np.ndarray, count: int, *, seed: tuple[int, int]
) -> tuple[TaskSpec, ...]:
    """`count` of the tasks in the order in which they are drawn; all, when there are fewer. `weights`: (tasks,), above 0."""
    # The smallest of exponential draws divided by weights.
    arrivals = np.random.default_rng(seed).exponential(size=len(specs)) / weights
    return tuple(specs[position] for position in np.argsort(arrivals, kind="stable")[:count])
