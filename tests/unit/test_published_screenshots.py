"""The screenshots that tell most about a criterion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.published.screenshots import relevant


@pytest.mark.parametrize(
    ("scores", "limit", "expected"),
    [
        ((), 5, ()),
        ((0, 0, 0), 2, (1, 2)),
        ((3, 9, 1, 9), 2, (1, 3)),
        ((9, 1, 5, 2), 3, (0, 2)),
        ((6, 4, 3), 3, (0, 1)),
        ((9, 6, 4, 3), 4, (0, 1, 2)),
        ((5, 4, 0), 3, (0, 1, 2)),
        ((10, 5, 5), 3, (0, 1, 2)),
    ],
)
def test_the_highest_in_their_order_without_those_far_below(
    scores: tuple[int, ...], limit: int, expected: tuple[int, ...]
) -> None:
    assert relevant(scores, limit) == expected


@given(st.lists(st.integers(0, 10), min_size=1, max_size=60), st.integers(1, 6))
def test_the_best_is_always_shown_and_never_more_than_the_limit(scores: list[int], limit: int) -> None:
    found = relevant(scores, limit)
    assert 0 < len(found) <= limit
    assert list(found) == sorted(set(found))
    assert max(scores) in {scores[place] for place in found}
