"""Which screenshots a question shows."""

import msgspec
import pytest

from judges.rubric.evidence import SeenScreenshot, distinct, evidence, spread
from schemas.messages import Screenshot
from tests.builders import observation, task
from tests.support.judging.rubric_world import rubric_task, seen


def _shots(number: int) -> list[SeenScreenshot]:
    return [SeenScreenshot(Screenshot(b"%d" % step, "image/jpeg", 1, 1), (step,)) for step in range(number)]


def _steps(shots: tuple[SeenScreenshot, ...]) -> list[int]:
    return [shot.step for shot in shots]


def test_equal_screenshots_are_one() -> None:
    found = distinct(seen(rubric_task(), [b"a", b"a", b"b"]))
    assert [(shot.screenshot.data, shot.steps) for shot in found] == [(b"a", (0, 1)), (b"b", (2,))]


def test_the_state_at_the_end_comes_last_also_when_it_was_seen_before() -> None:
    found = distinct(seen(rubric_task(), [b"start", b"list", b"start"]))
    assert [(shot.screenshot.data, shot.steps) for shot in found] == [(b"list", (1,)), (b"start", (0, 2))]


def test_a_screenshot_that_the_browser_found_unchanged_is_the_one_before() -> None:
    first, second, third = seen(rubric_task(), [b"a", b"a encoded anew", b"a encoded once more"])
    flagged = [first, *(msgspec.structs.replace(observation, same_screenshot=True) for observation in (second, third))]
    assert [(shot.screenshot.data, shot.steps) for shot in distinct(flagged)] == [(b"a", (0, 1, 2))]


def test_a_first_screenshot_that_claims_to_be_unchanged_is_a_screenshot() -> None:
    lone = msgspec.structs.replace(observation(task(), data=b"a"), same_screenshot=True)
    assert [shot.screenshot.data for shot in distinct([lone])] == [b"a"]


@pytest.mark.parametrize(
    ("number", "limit", "steps"),
    [
        (0, 3, []),
        (3, 3, [0, 1, 2]),
        (5, 1, [4]),
        (5, 2, [0, 4]),
        (5, 3, [0, 2, 4]),
        (10, 4, [0, 3, 6, 9]),
    ],
)
def test_a_sample_is_evenly_spread_and_has_the_last(number: int, limit: int, steps: list[int]) -> None:
    assert _steps(spread(_shots(number), limit)) == steps


@pytest.mark.parametrize("limit", range(1, 25))
def test_a_sample_is_as_large_as_it_may_be(limit: int) -> None:
    for number in range(1, 60):
        steps = _steps(spread(_shots(number), limit))
        assert len(steps) == min(limit, number)
        assert steps == sorted(set(steps))
        assert steps[-1] == number - 1


@pytest.mark.parametrize(
    ("needed", "limit", "steps"),
    [
        ([], 48, [5]),
        ([5], 48, [5]),
        ([1, 3], 48, [1, 3, 5]),
        ([0, 1, 2, 3, 4], 3, [0, 2, 5]),
        ([0, 1], 1, [5]),
    ],
)
def test_evidence_is_what_was_needed_and_the_last(needed: list[int], limit: int, steps: list[int]) -> None:
    assert _steps(evidence(_shots(6), needed, limit)) == steps
