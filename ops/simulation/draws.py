"""Seeded draws: what a simulated part does is a function of the seed and of what it is about, never of when it runs."""

import random

from schemas.simulation_config import SimulationConfig

_PARETO_SHAPE = 1.8
"""A finite mean and an infinite variance."""


def generator(*about: object) -> random.Random:
    """The same generator for the same words, in every process."""
    return random.Random("|".join(map(str, about)))  # noqa: S311 - nothing secret is drawn


def spread(draw: random.Random, mean: float, tail: str) -> float:
    """One value of the given mean; `tail` is that of `SimulationConfig`."""
    match tail:
        case "exponential":
            return draw.expovariate(1.0 / mean) if mean else 0.0
        case "pareto":
            return draw.paretovariate(_PARETO_SHAPE) * mean * (_PARETO_SHAPE - 1.0) / _PARETO_SHAPE
        case _:
            return mean


def num_steps(draw: random.Random, config: SimulationConfig) -> int:
    """Steps that a page takes: at least one, on average about `mean_steps`."""
    return min(1 + round(spread(draw, config.mean_steps - 1.0, config.tail)), config.max_steps)
