"""What came of training episodes, by version and by page; and when a run may be expected to end."""

import msgspec
import pytest

from ops.monitor.outcomes import Outcomes, page_of
from ops.monitor.snapshot import sections
from ops.monitor.state import MonitorState
from schemas.config import Config
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Judgement, Split
from tests.builders import checkpoint, judgement, task, trajectory
from tests.unit.test_monitor_state import state, stored


def ended(name: str, reward: float | None, *, version: int = 0, steps: int = 1, site: str = "demo:a?seed=1") -> Judgement:
    played = msgspec.structs.replace(task(name), policy_version=PolicyVersion(version), website=site)
    return judgement(trajectory(played, num_steps=steps), reward)


def test_success_and_steps_by_version_and_page() -> None:
    outcomes = Outcomes()
    for each in (
        ended("a", 1.0, version=1, steps=2),
        ended("b", 0.0, version=2, steps=4),
        ended("c", 1.0, version=2, steps=2, site="https://www.example.org/x"),
        ended("d", None, version=2, steps=9, site="https://www.example.org/y"),
    ):
        outcomes.apply(each)
    versions = {
        version: (of.num_episodes, of.num_scored, of.success, of.steps) for version, of in outcomes.by_version().items()
    }
    assert versions == {2: (3, 2, 0.5, 5.0), 1: (1, 1, 1.0, 2.0)}
    pages = {page: (of.num_episodes, of.success, of.steps) for page, of in outcomes.by_page().items()}
    assert pages == {"demo:a": (2, 0.5, 3.0), "example.org": (2, 1.0, 5.5)}
    assert list(pages) == ["demo:a", "example.org"]


def test_held_out_episodes_and_those_that_nobody_played_do_not_count() -> None:
    outcomes = Outcomes()
    outcomes.apply(judgement(trajectory(task(split=Split.EVAL))))
    outcomes.apply(judgement(msgspec.structs.replace(trajectory(task()), worker=WorkerId("")), None))
    assert (outcomes.by_version(), outcomes.by_page()) == ({}, {})


def test_memory_is_bounded() -> None:
    outcomes = Outcomes()
    for number in range(500):
        outcomes.apply(ended(f"t{number}", 1.0, version=number, site=f"https://s{number}.example/"))
    assert list(outcomes.by_version()) == list(range(499, 483, -1))
    assert len(outcomes.by_page()) == 200
    for number in range(100):
        outcomes.apply(ended(f"u{number}", 0.0, site="https://s0.example/"))
    assert outcomes.by_page()["s0.example"].num_episodes == 64


@pytest.mark.parametrize(
    ("website", "page"),
    [
        ("miniwob:click-option?seed=3", "miniwob:click-option"),
        ("https://www.example.org/a?b=c", "example.org"),
        ("http://example.org:8443/a", "example.org:8443"),
        ("http://localhost:99/x", "localhost:99"),
    ],
)
def test_a_page_of_a_suite_has_its_name_and_an_address_its_site(website: str, page: str) -> None:
    assert page_of(website) == page


def of_versions(*times: float) -> MonitorState:
    of = state()
    for number, at in enumerate(times, 1):
        stored(of, checkpoint(number), at, seq=number)
    return of


def test_the_end_is_expected_from_how_long_the_latest_versions_took() -> None:
    of = of_versions(100.0, 160.0, 220.0)
    assert of.ends_at(10, now=230.0) == 280.0 + 6 * 60.0
    assert of.ends_at(10, now=500.0) == 500.0 + 6 * 60.0  # the next is late
    assert of.ends_at(3, now=230.0) is None


def test_an_end_that_is_not_known_is_not_told() -> None:
    assert of_versions().ends_at(10, now=5.0) is None
    assert of_versions(100.0).ends_at(10, now=130.0) is None


def test_programs_get_the_same() -> None:
    of = of_versions(100.0, 160.0)
    stored(of, ended("a", 1.0, version=2, steps=2), 170.0, seq=9)
    stored(of, judgement(trajectory(task("e", split=Split.EVAL)), 0.0), 171.0, seq=10)
    told = sections(of, [], Config(), 180.0)
    assert told["metrics"]["ends_at"] == 220 + 97 * 60
    outcome = {"episodes": 1, "scored": 1, "success": 1.0, "steps": 2.0}
    assert told["outcomes"] == {"versions": {"2": outcome}, "pages": {"demo:a": outcome}}
    assert told["training"]["rounds"] == [{"version": 0, "judged": 1, "of": None, "success": 0.0}]
