"""Agreement of two yes-or-no verdicts on the same episodes: pure figures, None where there is nothing to divide by."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Counts of episodes by truth and verdict; a success is the positive."""

    true_positives: int = 0
    false_positives: int = 0
    """Successes that were none: what a policy learns to exploit."""
    false_negatives: int = 0
    true_negatives: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> "Confusion":
        """Pairs of truth and verdict.

        >>> Confusion.of([(True, True), (False, True)])
        Confusion(true_positives=1, false_positives=1, false_negatives=0, true_negatives=0)
        """
        counted = list(pairs)
        return cls(
            true_positives=counted.count((True, True)),
            false_positives=counted.count((False, True)),
            false_negatives=counted.count((True, False)),
            true_negatives=counted.count((False, False)),
        )

    @property
    def number(self) -> int:
        return self.true_positives + self.false_positives + self.false_negatives + self.true_negatives

    @property
    def precision(self) -> Share:
        """Of the successes by verdict, those that are."""
        return Share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> Share:
        """Of the successes, those by verdict."""
        return Share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def agreement(self) -> Share:
        """Verdicts that are right: accuracy."""
        return Share(self.true_positives + self.true_negatives, self.number)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN).

        Source: C. J. van Rijsbergen, Information Retrieval, 2nd edition (1979), chapter 7.
        """
        return Share(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.false_negatives).value

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance, (po - pe) / (1 - pe), where pe = sum over classes of the product of both shares.

        None where both always say the same one thing: chance alone would agree.
        Source: J. Cohen, A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20 (1960), 37-46.
        """
        n = self.number
        truths = self.true_positives + self.false_negatives
        verdicts = self.true_positives + self.false_positives
        by_chance = truths * verdicts + (n - truths) * (n - verdicts)
        if by_chance == n * n:
            return None
        return (n * (self.true_positives + self.true_negatives) - by_chance) / (n * n - by_chance)
