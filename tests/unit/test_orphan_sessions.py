"""Which running sessions nobody holds."""

from browser_workers.providers.orphans import Holder, orphans
from browser_workers.providers.provider import Label, Running

NOW = 1000.0


def running(name: str, worker: str, *, until: float = NOW + 1, token: str = "") -> Running:
    return Running(name, Label("run", worker, "episode", token or name, until))


def left(*sessions: Running, ids: tuple[str, ...] = (), tokens: tuple[str, ...] = ()) -> list[str]:
    return list(orphans(sessions, Holder("mine", frozenset(ids), frozenset(tokens)), now=NOW))


def test_of_its_own_name_what_a_worker_does_not_hold_is_left() -> None:
    assert left(running("a", "mine"), running("b", "mine"), running("c", "mine"), ids=("a",), tokens=("b",)) == ["c"]


def test_of_two_that_one_request_has_brought_the_one_that_was_not_told_of_is_left() -> None:
    assert left(running("a", "mine", token="t"), running("b", "mine", token="t"), ids=("a",)) == ["b"]


def test_of_others_only_what_is_over_is_left() -> None:
    assert left(running("a", "other"), running("b", "other", until=NOW), running("c", "other", until=NOW - 1)) == ["b", "c"]


def test_what_is_over_is_left_whoever_holds_it() -> None:
    assert left(running("a", "mine", until=NOW), ids=("a",)) == ["a"]
