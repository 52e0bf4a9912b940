"""The MiniWoB++ suite by value: names, parameters, what is served, what a demonstration does, the table in its page."""

import msgspec
import pytest

from agents.demonstration import demonstrated_action, element_at
from browser_workers.site import HTML, NOT_FOUND, SiteRequest
from browser_workers.suites import UnknownWebsite
from browser_workers.suites.miniwob import suite as miniwob_suite
from browser_workers.suites.miniwob.site import MiniWobSite, installed_files, page_paths
from browser_workers.suites.miniwob.suite import MiniWobSuite
from ops.commands.arguments import seed_range
from schemas.errors import PromptRefused
from schemas.messages import Action, ActionKind, Element, Observation
from tests import builders
from tests.support.texts import miniwob_table
from tests.unit.test_docs import ROOT

SUITE = MiniWobSuite()


def test_every_page_of_the_package_has_a_name() -> None:
    assert len(SUITE.pages) == 134
    assert {"click-test", "use-slider", "flight.AA", "flight.Alaska-auto-medium"} <= set(SUITE.pages)


def test_a_page_is_opened_under_its_seed() -> None:
    opening = SUITE.resolve("click-test", "seed=5&mode=test")
    assert opening.url == "http://miniwob.millrace.test/miniwob/click-test.html?seed=5&mode=test"
    assert opening.site is SUITE.resolve("enter-text", "").site, "one site, so that tabs are used again"
    assert opening.keeps_no_state
    flight = SUITE.resolve("flight.AA", "")
    assert flight.url == "http://miniwob.millrace.test/flight/AA/wrapper.html?seed=0"
    assert not flight.keeps_no_state
    quiet = [SUITE.resolve(page, "").quiet_s > 0 for page in ("click-test", "click-collapsible", "flight.AA")]
    assert quiet == [False, True, True]


@pytest.mark.parametrize(
    ("page", "query", "said"),
    [
        ("no-such", "", "no page 'no-such'"),
        ("../core/core", "", "no page"),
        ("click-test", "seed=one", "seed is 'one'"),
        ("click-test", "limit_s=0", "limit_s is '0'"),
        ("click-test", "limit_s=1e9", "limit_s is '1e9'"),
    ],
)
def test_wrong_websites_are_refused(page: str, query: str, said: str) -> None:
    with pytest.raises(UnknownWebsite, match=said):
        SUITE.resolve(page, query)


def test_without_the_package_the_way_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniwob_suite, "installed_files", dict)
    with pytest.raises(UnknownWebsite, match=r"pip install miniwob==1\.1\.0"):
        MiniWobSuite().resolve("click-test", "seed=5")


def test_files_are_served_with_their_types_and_nothing_else_is() -> None:
    site = MiniWobSite(installed_files())
    page = site.respond(SiteRequest(path="/miniwob/click-test.html", query="seed=1"))
    assert page.content_type == HTML
    assert page.body.count(b"core.startEpisode = ") == 1
    assert page.body.index(b"core/core.js") < page.body.index(b"core.startEpisode = ") < page.body.index(b"var genProblem")
    types = {
        "/core/core.js": "text/javascript; charset=utf-8",
        "/core/core.css": "text/css; charset=utf-8",
        "/common/special/checkbox-numbers/ch_1.png": "image/png",
        "/flight/Alaska/stylesheets/circular/ASCircularWeb-Bold.woff": "font/woff",
    }
    assert {path: site.respond(SiteRequest(path=path)).content_type for path in types} == types
    for path in ("/", "/miniwob", "/../__init__.py", "/miniwob/%2e%2e/core/core.js", "/environment.py"):
        assert site.respond(SiteRequest(path=path)) == NOT_FOUND


def test_what_is_not_there_is_not_kept_in_memory() -> None:
    site = MiniWobSite(installed_files())
    for number in range(3):
        site.respond(SiteRequest(path=f"/{number}"))
    assert site._response.cache_info().currsize == 0


def test_every_page_gets_the_script_that_begins_it() -> None:
    files = installed_files()
    site = MiniWobSite(files)
    bare = [page for page, path in page_paths(files).items() if b"millraceOracles" not in site.respond(SiteRequest(path)).body]
    assert bare == []


# demonstrations -------------------------------------------------------------------------------------------------------

OUTER = Element(id=1, tag="div", text="list", box=(0, 0, 160, 100))
INNER = Element(id=2, tag="button", text="Go", box=(10, 10, 20, 10))
OTHER = Element(id=3, tag="button", text="Stop", box=(10, 150, 20, 10))
INTO_INNER, INTO_OTHER = (20 / 160 * 1000, 15 / 210 * 1000), (20 / 160 * 1000, 155 / 210 * 1000)


def shown(action: Action | None, box: tuple[int, int, int, int] | None = None) -> Observation:
    observation = builders.observation(builders.task())
    return msgspec.structs.replace(observation, elements=(OUTER, INNER, OTHER), oracle_action=action, oracle=box)


def test_a_box_alone_is_clicked() -> None:
    action = demonstrated_action(shown(None, (10, 10, 20, 10)))
    assert action.kind is ActionKind.CLICK
    assert action.point == pytest.approx(INTO_INNER)
    assert demonstrated_action(shown(None, (10, 10, 20, 10)), "set_of_marks") == Action(kind=ActionKind.CLICK, element=2)


@pytest.mark.parametrize(
    ("in_coordinates", "by_number"),
    [
        (
            Action(kind=ActionKind.TYPE, point=INTO_INNER, text="a b"),
            Action(kind=ActionKind.TYPE, element=2, text="a b"),
        ),
        (
            Action(kind=ActionKind.DRAG, point=INTO_INNER, end_point=INTO_OTHER),
            Action(kind=ActionKind.DRAG, element=2, end_element=3),
        ),
        (
            Action(kind=ActionKind.SCROLL, point=INTO_OTHER, direction="up"),
            Action(kind=ActionKind.SCROLL, element=3, direction="up"),
        ),
        (
            Action(kind=ActionKind.SCROLL, point=(900.0, 900.0), direction="up"),
            Action(kind=ActionKind.SCROLL, direction="up"),
        ),
        (Action(kind=ActionKind.PRESS, keys=("Tab",)), Action(kind=ActionKind.PRESS, keys=("Tab",))),
        (Action(kind=ActionKind.WAIT, seconds=0.5), Action(kind=ActionKind.WAIT, seconds=0.5)),
    ],
)
def test_steps_are_told_in_the_words_of_the_mode(in_coordinates: Action, by_number: Action) -> None:
    assert demonstrated_action(shown(in_coordinates)) == in_coordinates
    assert demonstrated_action(shown(in_coordinates), "set_of_marks") == by_number


def test_where_no_number_is_nothing_can_be_demonstrated() -> None:
    nowhere = Action(kind=ActionKind.CLICK, point=(900.0, 900.0))
    with pytest.raises(PromptRefused, match="no marked element"):
        demonstrated_action(shown(nowhere), "set_of_marks")
    with pytest.raises(PromptRefused, match="no scripted oracle"):
        demonstrated_action(shown(None))


def test_the_innermost_element_is_meant() -> None:
    assert element_at((OUTER, INNER), (15.0, 15.0)) == INNER
    assert element_at((OUTER, INNER), (60.0, 15.0)) == OUTER
    assert element_at((OUTER, INNER), (15.0, 200.0)) is None
    assert element_at((OUTER, INNER), (15.0, 15.0), OUTER.box) == OUTER
    assert element_at((OUTER, INNER), (15.0, 15.0), INNER.box) == INNER


# the command and the page ---------------------------------------------------------------------------------------------


def test_seeds_are_a_range() -> None:
    assert seed_range("0:100") == range(100)
    for text in ("5", "5:5", "a:b", "-1:3"):
        with pytest.raises(Exception, match="names no seeds"):
            seed_range(text)


def test_the_table_in_the_page_is_the_measured_one() -> None:
    text = (ROOT / "docs" / "miniwob.md").read_text(encoding="utf-8")
    shown_table = text.partition(miniwob_table.BEGIN)[2].partition(miniwob_table.END)[0]
    assert shown_table == miniwob_table.table()
    rows = shown_table.splitlines()[2:]
    assert {row.split("|")[1].strip() for row in rows} == set(SUITE.pages)
