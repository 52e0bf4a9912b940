"""Which version counts, of what policies have said and who of them is heard: by value."""

import itertools

import pytest

from bus.served import SILENT_S, ServedVersions
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Heartbeat, Role, ServedVersion, ServingState

SERVING, UNABLE, AWAY = ServingState


def said(worker: str, state: ServingState, version: int) -> ServedVersion:
    return ServedVersion(worker=WorkerId(worker), state=state, version=PolicyVersion(version), at=0.0)


def beat(worker: str) -> Heartbeat:
    return Heartbeat(role=Role.POLICY, worker=WorkerId(worker), state="working", at=0.0)


def known(*records: ServedVersion, at: float = 0.0) -> ServedVersions:
    """Of workers that are all heard."""
    found = ServedVersions()
    for seq, record in enumerate(records, start=1):
        found.apply(record, at, seq)
        found.apply(beat(record.worker), at)
    return found


@pytest.mark.parametrize(
    ("records", "counted", "behind"),
    [
        ([], None, set()),
        ([said("a", SERVING, 3)], 3, set()),
        ([said("a", SERVING, 3), said("b", SERVING, 5)], 3, set()),
        ([said("a", UNABLE, 3), said("b", SERVING, 5)], 5, {"a"}),
        ([said("a", UNABLE, 5), said("b", SERVING, 5)], 5, set()),
        ([said("a", UNABLE, 5), said("b", SERVING, 4)], 4, set()),
        ([said("a", UNABLE, 3)], 3, set()),
        ([said("a", UNABLE, 3), said("b", UNABLE, 5)], 5, {"a"}),
        ([said("a", UNABLE, 3), said("b", AWAY, 5)], 3, set()),
        ([said("a", AWAY, 3)], None, set()),
    ],
)
def test_the_oldest_counts_among_those_that_can_follow(
    records: list[ServedVersion], counted: int | None, behind: set[str]
) -> None:
    found = known(*records)
    assert found.counted(1.0) == counted
    assert {record.worker for record in records if found.is_left_behind(record.worker, 1.0)} == behind


def test_nobody_who_may_answer_is_older_than_what_counts() -> None:
    """Whatever three live workers have said."""
    standings = list(itertools.product(ServingState, range(3)))
    for trio in itertools.product(standings, repeat=3):
        records = [said(name, *each) for name, each in zip("abc", trio, strict=True)]
        found = known(*records)
        counted = found.counted(1.0)
        answering = [record for record in found.live(1.0) if not found.is_left_behind(record.worker, 1.0)]
        assert all(counted is not None and record.version >= counted for record in answering)
        assert answering or all(record.state is AWAY for record in records), "somebody answers as long as anybody is there"


def test_a_word_does_not_age_and_a_silent_worker_does() -> None:
    found = known(said("a", SERVING, 3), said("b", SERVING, 5))
    weeks = 40 * 86400.0
    found.apply(beat("a"), weeks)
    assert found.counted(weeks) == 3
    assert found.counted(weeks + SILENT_S) is None


def test_where_nobody_is_heard_the_oldest_word_bounds_what_is_admitted() -> None:
    """Whoever was stopped for a while goes on with the version that it had."""
    found = known(said("a", SERVING, 3), said("b", UNABLE, 2), said("c", AWAY, 1))
    assert [found.counted_or_last(at) for at in (1.0, SILENT_S + 1.0)] == [3, 2]
    assert known(said("c", AWAY, 1)).counted_or_last(1.0) is None


def test_a_worker_that_is_heard_and_has_said_nothing_serves_nothing() -> None:
    found = known(said("a", SERVING, 3))
    found.apply(beat("b"), 0.0)
    assert found.counted(1.0) == 3


def test_the_newest_word_counts_in_whatever_order_words_come() -> None:
    words = list(enumerate((said("a", SERVING, 1), said("a", UNABLE, 1), said("a", SERVING, 2)), start=1))
    for order in itertools.permutations(words):
        found = ServedVersions()
        found.apply(beat("a"), 0.0)
        for seq, word in order:
            found.apply(word, 0.0, seq)
        assert found.of(WorkerId("a")) == words[-1][1]
