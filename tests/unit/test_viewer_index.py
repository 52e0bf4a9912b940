"""The list of the viewer: filters, orders, pages and counts, by value."""

import msgspec
import pytest
from starlette.datastructures import QueryParams

from ops.web.index import EpisodeIndex, Listing
from ops.web.query import PAGE_ROWS, read_query
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion, TaskId, WorkerId
from schemas.messages import FinalState, Judgement, Outcome, Split, Timings, Trajectory
from tests import builders

RUBRIC = "environment_v1"


def ended(name: str, at: float, **changes: object) -> Trajectory:
    of = builders.trajectory(builders.task(name), num_steps=2)
    return msgspec.structs.replace(of, **{"ended_at": at, **changes})


def judged(of: Trajectory, reward: float | None, rubric: str = RUBRIC) -> Judgement:
    return builders.judgement(of, reward, rubric=rubric)


@pytest.fixture
def index() -> EpisodeIndex:
    filled = EpisodeIndex(RUBRIC)
    lamp = ended("lamp", 1.0, answer="A Brass lamp", versions=(PolicyVersion(2), PolicyVersion(4)))
    chair = ended("chair", 2.0, outcome=Outcome.STEP_LIMIT, worker=WorkerId("other"), timings=Timings(total_s=9.0))
    far = builders.task("far", split=Split.EVAL)
    far = msgspec.structs.replace(far, website="https://www.example.org/x", difficulty=7, task=TaskId("far"))
    table = msgspec.structs.replace(
        builders.trajectory(far),
        ended_at=3.0,
        final_state=FinalState(url="https://example.org/END", title="end"),
        error="lost",
    )
    for trajectory in (lamp, chair, table):
        filled.add(trajectory)
    filled.rule(judged(lamp, 1.0))
    filled.rule(judged(chair, 0.0))
    filled.rule(judged(chair, 1.0, "strict"))
    filled.caught_up()
    return filled


def names(listing: Listing) -> list[str]:
    return [row.summary.task for row in listing.rows]


def asked(index: EpisodeIndex, query: str) -> list[str]:
    return names(index.listing(read_query(QueryParams(query))))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["far", "chair", "lamp"]),
        ("q=brass LAMP", ["lamp"]),
        ("q=example.org/end", ["far"]),
        ("q=lost", ["far"]),
        ("task=lamp", ["lamp"]),
        ("group=train-r0000-chair", ["chair"]),
        ("site=example.org", ["far"]),
        ("split=eval", ["far"]),
        ("difficulty=7", ["far"]),
        ("outcome=step_limit", ["chair"]),
        ("outcome=step_limit&site=demo", ["chair"]),
        ("worker=other", ["chair"]),
        ("verdict=success", ["lamp"]),
        ("verdict=success&rubric=strict", ["chair"]),
        ("verdict=unjudged", ["far"]),
        ("verdict=success&verdict=failure", ["chair", "lamp"]),
        ("min_reward=0.5", ["lamp"]),
        ("max_reward=0.5", ["chair"]),
        ("version=2-4", ["lamp"]),
        ("version=3-4", []),
        ("version=0", ["far", "chair"]),
        ("sort=ended", ["lamp", "chair", "far"]),
        ("sort=-reward", ["lamp", "chair", "far"]),
        ("sort=reward", ["chair", "lamp", "far"]),
        ("sort=-seconds", ["chair", "far", "lamp"]),
        ("sort=task", ["chair", "far", "lamp"]),
    ],
)
def test_filters_and_orders(index: EpisodeIndex, query: str, expected: list[str]) -> None:
    assert asked(index, query) == expected


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("colour=red", "is no filter"),
        ("verdict=maybe", "write one of success"),
        ("outcome=won", "write one of answered"),
        ("min_reward=much", "min_reward=0.5"),
        ("max_reward=nan", "max_reward=0.5"),
        ("version=7-3", "several as 3-7"),
        ("version=٣", "no whole number"),
        ("difficulty=hard", "difficulty=2"),
        ("sort=beauty", "write one of ended"),
        ("page=x", "page=2"),
    ],
)
def test_mistakes_say_what_to_write(query: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read_query(QueryParams(query))


def test_counts_are_of_what_matches(index: EpisodeIndex) -> None:
    listing = index.listing(read_query(QueryParams("")))
    assert (listing.num_matching, listing.num_episodes) == (3, 3)
    assert (listing.num_successes, listing.num_with_verdict, listing.mean_reward) == (1, 2, 0.5)
    assert listing.rubrics == (RUBRIC, "strict")
    assert {choice.value: choice.count for choice in listing.choices["verdict"]} == {"success": 1, "failure": 1, "unjudged": 1}
    assert [choice.value for choice in listing.choices["site"]] == ["demo", "example.org"]
    assert index.listing(read_query(QueryParams("split=eval"))).mean_reward is None


def test_a_judgement_replaces_the_one_before_it_and_brings_its_episode_along() -> None:
    index, of = EpisodeIndex(RUBRIC), ended("lamp", 1.0)
    index.rule(judged(of, 0.0))
    index.add(of)
    assert asked(index, "verdict=failure") == ["lamp"]
    index.rule(judged(of, 1.0))
    assert asked(index, "verdict=failure") == []
    assert asked(index, "verdict=success") == ["lamp"]


def test_another_rubric_counts_where_the_runs_own_judged_nothing() -> None:
    index, of = EpisodeIndex(RUBRIC), ended("lamp", 1.0)
    index.rule(judged(of, 1.0, "strict"))
    assert index.listing(read_query(QueryParams(""))).rubric == "strict"


def test_pages_are_bounded_and_one_beyond_the_end_is_the_last() -> None:
    index = EpisodeIndex(RUBRIC)
    for number in range(2 * PAGE_ROWS + 1):
        index.add(ended(f"t{number}", float(number)))
    last = index.listing(read_query(QueryParams("page=99")))
    assert (last.page, last.num_pages, names(last)) == (3, 3, ["t0"])
    assert len(index.listing(read_query(QueryParams("page=2"))).rows) == PAGE_ROWS


def test_the_oldest_are_let_go_and_counted() -> None:
    index = EpisodeIndex(RUBRIC, most=2)
    for number in range(5):
        index.add(ended(f"t{number}", float(number)))
    listing = index.listing(read_query(QueryParams("")))
    assert (names(listing), listing.num_let_go) == (["t4", "t3"], 3)


def test_what_was_let_go_is_not_taken_in_again() -> None:
    index = EpisodeIndex(RUBRIC, most=3)
    episodes = [ended(f"t{number}", float(number)) for number in range(6)]
    for episode in episodes:
        index.add(episode)
    for episode in episodes[:5]:  # the newest is not judged yet
        index.rule(judged(episode, 1.0))
    listing = index.listing(read_query(QueryParams("")))
    assert names(listing) == ["t5", "t4", "t3"]
    assert (listing.num_let_go, listing.num_successes) == (3, 2)


def test_what_was_let_go_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.web.index._MOST_AHEAD", 5, raising=False)
    index = EpisodeIndex(RUBRIC, most=3)
    episodes = [ended(f"t{number}", float(number)) for number in range(200)]
    for episode in episodes:
        index.add(episode)
    for episode in episodes:
        index.rule(judged(episode, 1.0))
    held = {name: len(value) for name, value in vars(index).items() if isinstance(value, dict | set | list)}
    assert max(held.values()) < 50, held
    listing = index.listing(read_query(QueryParams("")))
    assert (names(listing), listing.num_let_go, listing.num_successes) == (["t199", "t198", "t197"], 197, 3)


def test_judgements_that_are_read_ahead_of_their_episode_wait_for_it() -> None:
    index, late = EpisodeIndex(RUBRIC, most=2), ended("late", 9.0)
    for number in range(3):
        index.add(ended(f"t{number}", float(number)))
    for rubric in (RUBRIC, "strict"):
        index.rule(judged(late, 1.0, rubric))
    index.add(late)
    assert asked(index, "verdict=success") == asked(index, "verdict=success&rubric=strict") == ["late"]


@pytest.mark.anyio
async def test_whoever_waits_hears_of_a_change() -> None:
    index = EpisodeIndex(RUBRIC)
    before = index.revision
    index.add(ended("lamp", 1.0))
    assert await index.wait_change(before) == before + 1
