"""Which version a policy loads, and when it tries again: the states by value, with a clock of the test's own."""

import math

import pytest

from agents.following import FIRST_PAUSE_S, LONGEST_PAUSE_S, Following, pause_s
from schemas.errors import CheckpointCorrupt, WeightsUnavailable
from schemas.ids import PolicyVersion
from tests.builders import checkpoint

GONE = WeightsUnavailable("not whole on the bus")
NEVER_SHORTER = 0.0


def following(served: int = 0) -> Following:
    return Following(PolicyVersion(served))


def announced(state: Following, seq: int, version: int, at: float = 0.0) -> None:
    state.announced(seq, checkpoint(version), at)


def refused(state: Following, error: Exception = GONE, at: float = 0.0) -> None:
    assert state.wanted is not None
    state.failed(state.wanted, error, at, NEVER_SHORTER)


def test_nothing_is_due_before_something_is_announced() -> None:
    assert following().wait_s(5.0) == math.inf


def test_what_is_announced_is_due_at_once_and_then_served() -> None:
    state = following()
    announced(state, 1, 1, at=5.0)
    assert state.wait_s(5.0) == 0.0
    assert not state.unable, "it was not tried yet"
    state.loaded(PolicyVersion(1))
    assert (state.served, state.wanted, state.wait_s(5.0)) == (1, None, math.inf)


def test_what_was_refused_is_tried_again_more_and_more_rarely_and_for_ever() -> None:
    state, now, waits = following(), 0.0, []
    announced(state, 1, 1)
    for _ in range(2000):
        refused(state, at=now)
        waits.append(state.wait_s(now))
        now += waits[-1]
    assert waits[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert set(waits[6:]) == {LONGEST_PAUSE_S}
    assert state.wait_s(now) == 0.0


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0])
def test_a_pause_is_shortened_by_half_at_most(chance: float) -> None:
    assert pause_s(1, chance) == FIRST_PAUSE_S * (1.0 - 0.5 * chance)


def test_a_newer_announcement_is_tried_at_once() -> None:
    state = following()
    announced(state, 1, 1)
    refused(state, at=0.0)
    refused(state, at=1.0)
    announced(state, 2, 2, at=1.5)
    assert state.wait_s(1.5) == 0.0
    refused(state, at=1.5)
    assert state.wait_s(1.5) == FIRST_PAUSE_S, "its pauses begin anew"


def test_the_newest_counts_by_its_place_so_that_a_version_in_vain_is_forgotten() -> None:
    state = following(served=5)
    announced(state, 10, 1000)
    refused(state)
    assert state.unable
    announced(state, 11, 6)
    state.loaded(PolicyVersion(6))
    assert state.state == (6, None, "")
    assert state.wanted is None


def test_behind_one_that_is_no_newer_than_what_is_served_nothing_is_wanted() -> None:
    """What was announced before it is no version of the run any more."""
    state = following(served=3)
    announced(state, 4, 4)
    refused(state)
    assert state.unable
    announced(state, 5, 2)
    assert state.state == (3, None, "")
    assert state.wait_s(0.0) == math.inf


def test_one_that_was_heard_before_does_not_begin_anew() -> None:
    state = following()
    announced(state, 1, 1)
    refused(state, at=0.0)
    announced(state, 1, 1, at=0.1)
    assert state.wait_s(0.1) == pytest.approx(0.9)


def test_the_state_changes_with_what_is_served_or_refused_and_not_with_words_or_tries() -> None:
    state = following()
    announced(state, 1, 1)
    told = [state.state]
    for error in (GONE, WeightsUnavailable("nothing came for 31 s"), CheckpointCorrupt("x does not match its hash")):
        refused(state, error)
        told.append(state.state)
    assert told == [(0, None, ""), (0, 1, "WeightsUnavailable"), (0, 1, "WeightsUnavailable"), (0, 1, "CheckpointCorrupt")]


def test_an_older_version_that_could_be_loaded_meanwhile_leaves_the_newest_wanted() -> None:
    state = following()
    announced(state, 3, 3)
    refused(state)
    state.loaded(PolicyVersion(2))
    assert state.state == (2, 3, "WeightsUnavailable")
    assert state.wait_s(0.0) == FIRST_PAUSE_S


def test_a_base_model_is_compared_with_version_0() -> None:
    state = Following(PolicyVersion(0), compared=False)
    announced(state, 1, 0)
    assert state.wait_s(0.0) == 0.0
    state.loaded(PolicyVersion(0))
    assert state.wanted is None
