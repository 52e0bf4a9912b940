"""The learning rate of every optimizer step. Pure: counts in, a number out."""

import math

from schemas.algorithm_config import AlgorithmConfig


def scheduled(rate: float, *, num_updates: int, algorithm: AlgorithmConfig) -> float:
    """The rate of the update that follows `num_updates` earlier ones; `rate` is its height."""
    warmup = algorithm.warmup_steps
    if algorithm.lr_scheduler_type == "constant":
        return rate
    if num_updates < warmup:
        return rate * (num_updates + 1) / warmup
    fallen = min(1.0, (num_updates - warmup) / max(1, algorithm.lr_scheduler_steps - warmup))
    match algorithm.lr_scheduler_type:
        case "linear":
            left = 1.0 - fallen
        case "cosine":
            left = (1.0 + math.cos(math.pi * fallen)) / 2
        case _:
            left = 1.0
    return rate * (algorithm.min_lr_ratio + (1.0 - algorithm.min_lr_ratio) * left)
