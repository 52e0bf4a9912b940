"""Computes mean and quantiles of values, exactly. Eight bytes per value are kept."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """None where there is no value."""

    number: int
    total: float
    mean: float | None
    p50: float | None
    p95: float | None


@dataclass(slots=True)
class Values:
    """Grows by one value at a time.

    >>> Values([4.0, 1.0, 2.0, 3.0]).spread()
    Spread(number=4, total=10.0, mean=2.5, p50=2.0, p95=4.0)
    """

    given: Iterable[float] = ()
    _values: "array[float]" = field(init=False)

    def __post_init__(self) -> None:
        self._values = array("d", self.given)

    def add(self, value: float) -> None:
        self._values.append(value)

    def spread(self) -> Spread:
        ordered = sorted(self._values)
        total = sum(ordered)
        return Spread(
            number=len(ordered),
            total=total,
            mean=total / len(ordered) if ordered else None,
            p50=quantile(ordered, 0.5) if ordered else None,
            p95=quantile(ordered, 0.95) if ordered else None,
        )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)]
