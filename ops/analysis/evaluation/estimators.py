"""Estimates pass@k, pass^k and intervals over tasks from several tries at each. Pure and seeded."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import msgspec

_RESAMPLES = 1000
_TAIL = 0.025


class Tries(msgspec.Struct, frozen=True, array_like=True):
    """At one task."""

    successes: int
    scored: int
    """With a verdict of success or failure."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over tasks with its interval of 95 %; None without a task that has enough tries."""

    k: int
    value: float | None
    low: float | None
    high: float | None
    num_tasks: int
    """Those with k scored tries or more: only they say anything."""


def pass_at(tries: Tries, k: int) -> float:
    """Chance that one of k tries succeeds: 1 - C(n - c, k) / C(n, k), unbiased for n >= k.

    Source: M. Chen et al., Evaluating large language models trained on code (2021), equation 1.
    """
    return 1.0 - comb(tries.scored - tries.successes, k) / comb(tries.scored, k)


def pass_all(tries: Tries, k: int) -> float:
    """Chance that all of k tries succeed: C(c, k) / C(n, k), unbiased for n >= k.

    Source: S. Yao et al., tau-bench (2024), where it is called pass^k.
    """
    return comb(tries.successes, k) / comb(tries.scored, k)


@dataclass(frozen=True, slots=True)
class Estimates:
    pass_at: tuple[Estimate, ...]
    pass_all: tuple[Estimate, ...]


def estimates(tries: Sequence[Tries], most: int, seed: int) -> Estimates:
    """For k from 1 to `most`."""
    return Estimates(
        pass_at=tuple(_estimate([pass_at(one, k) for one in tries if one.scored >= k], k, seed) for k in range(1, most + 1)),
        pass_all=tuple(_estimate([pass_all(one, k) for one in tries if one.scored >= k], k, seed) for k in range(1, most + 1)),
    )


def _estimate(values: Sequence[float], k: int, seed: int) -> Estimate:
    if not values:
        return Estimate(k=k, value=None, low=None, high=None, num_tasks=0)
    low, high = bootstrap(values, seed)
    return Estimate(k=k, value=sum(values) / len(values), low=low, high=high, num_tasks=len(values))


def bootstrap(values: Sequence[float], seed: int) -> tuple[float, float]:
    """The percentile interval of a mean at 95 %: whole tasks are drawn again, since the tries at one go together.

    Source: B. Efron and R. Tibshirani, An introduction to the bootstrap (1993), chapter 13.
    """
    draw = random.Random(seed)  # noqa: S311 - nothing secret is drawn
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(_RESAMPLES))
    return means[round(_TAIL * (_RESAMPLES - 1))], means[round((1 - _TAIL) * (_RESAMPLES - 1))]


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value that both succeed equally often, from the tasks that only one of them solved.

    Source: Q. McNemar, Note on the sampling error of the difference between correlated proportions (1947), in exact form.
    """
    discordant = only_first + only_second
    fewer = min(only_first, only_second)
    tail = sum(comb(discordant, count) for count in range(fewer + 1))
    return min(1.0, float(2 * tail / 2**discordant))
