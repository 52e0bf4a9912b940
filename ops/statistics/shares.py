"""Shares with their intervals: pure figures, None where there is nothing to divide by."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

_Z_95 = 1.959963984540054
"""Standard normal quantile at 0.975."""


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `number`."""

    count: int
    number: int

    @property
    def value(self) -> float | None:
        return self.count / self.number if self.number else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The score interval of 95 %, which holds for small numbers and near 0 and 1 too.

        With p = count / n: (p + z^2/2n +- z sqrt(p (1 - p)/n + z^2/4n^2)) / (1 + z^2/n).
        Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927), 209-212.
        """
        if not self.number:
            return None
        n, p, z = self.number, self.count / self.number, _Z_95
        middle = p + z * z / (2 * n)
        half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        scale = 1 + z * z / n
        # At 0 and n the bound is exact; rounding must not lead beyond it.
        low = 0.0 if self.count == 0 else (middle - half) / scale
        high = 1.0 if self.count == n else (middle + half) / scale
        return low, high


def share_json(share: Share) -> dict[str, Any]:
    """`interval`: 95 %."""
    return {"count": share.count, "number": share.number, "value": share.value, "interval": share.interval}
