"""Precision, recall, agreement, kappa and their intervals, by value: worked examples and published figures."""

import pytest

from ops.analysis.calibration.statistics import Confusion
from ops.statistics.shares import Share


@pytest.mark.parametrize(
    ("count", "number", "low", "high"),
    [
        # R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics in Medicine 17 (1998), table I.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_intervals(count: int, number: int, low: float, high: float) -> None:
    interval = Share(count, number).interval
    assert interval == pytest.approx((low, high), abs=5e-5)
    assert interval is not None
    assert 0.0 <= interval[0] <= count / number <= interval[1] <= 1.0


def test_nothing_has_no_share_and_no_interval() -> None:
    assert (Share(0, 0).value, Share(0, 0).interval) == (None, None)


@pytest.mark.parametrize(
    ("confusion", "kappa"),
    [
        # Cohen's measure on tables that textbooks work through: 20/5/10/15 of 50, and two of 100 with the same agreement.
        (Confusion(true_positives=20, false_negatives=5, false_positives=10, true_negatives=15), 0.4),
        (Confusion(true_positives=45, false_negatives=15, false_positives=25, true_negatives=15), 0.1304),
        (Confusion(true_positives=25, false_negatives=35, false_positives=5, true_negatives=35), 0.2593),
        (Confusion(true_positives=3, true_negatives=4), 1.0),
        (Confusion(false_positives=5, false_negatives=5), -1.0),
        (Confusion(true_positives=5, false_positives=5), 0.0),
        (Confusion(true_positives=7), None),
        (Confusion(true_negatives=7), None),
        (Confusion(), None),
    ],
)
def test_kappa(confusion: Confusion, kappa: float | None) -> None:
    assert confusion.kappa == (None if kappa is None else pytest.approx(kappa, abs=5e-5))


def test_shares_of_a_known_matrix() -> None:
    confusion = Confusion(true_positives=30, false_positives=10, false_negatives=20, true_negatives=40)
    assert (confusion.precision, confusion.recall, confusion.agreement) == (Share(30, 40), Share(30, 50), Share(70, 100))
    assert confusion.f1 == pytest.approx(2 * 0.75 * 0.6 / (0.75 + 0.6))
    assert confusion.kappa == pytest.approx((0.7 - 0.5) / (1 - 0.5))


def test_a_judge_that_finds_no_success_has_no_precision() -> None:
    confusion = Confusion(false_negatives=3, true_negatives=2)
    assert (confusion.precision.value, confusion.recall.value, confusion.f1, confusion.agreement.value) == (
        None,
        0.0,
        0.0,
        0.4,
    )
    assert Confusion(true_negatives=2).f1 is None


def test_pairs_are_truth_then_verdict() -> None:
    pairs = [(True, True)] * 4 + [(False, True)] * 3 + [(True, False)] * 2 + [(False, False)]
    counted = Confusion.of(iter(pairs))
    assert counted == Confusion(true_positives=4, false_positives=3, false_negatives=2, true_negatives=1)
    assert counted.number == 10
