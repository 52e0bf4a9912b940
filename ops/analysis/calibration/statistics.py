"""Agreement of two yes-or-no verdicts on the same episodes: pure figures, None where there is nothing to divide by."""

from collections.abc import Iterable
from dataclasses import dataclass

from ops.statistics.shares import Share


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
