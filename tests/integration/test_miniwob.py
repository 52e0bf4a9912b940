"""MiniWoB++ pages in a real Chromium: they start, repeat under their seeds, and their oracles solve them through the bus."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest

from agents.demonstration import Mode, demonstrated_action
from browser_workers.browser import EnvironmentState, View
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.suites.miniwob.suite import MiniWobSuite
from browser_workers.suites.miniwob.tasks import miniwob_tasks
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.errors import PageFailed
from schemas.messages import Action, ActionKind, Observation, Outcome, Task, Verdict
from tests import builders
from tests.deadlines import HANGS_S
from tests.support.browsers.page_plays import judged, playing
from tests.support.browsers.patience import wait_for_pages

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SUITE = MiniWobSuite()
_PAGES, _ORACLES = slice(None, None, 4), slice(1, None, 3)
"""The pages and the oracles that are tried here; all of them are by `benchmarks/miniwob_pages.py`."""
MIDDLE_OF_AREA = Action(kind=ActionKind.CLICK, point=(500, 650))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_pages(monkeypatch)


@pytest.fixture
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    config = BrowserConfig(viewport_width=160, viewport_height=210, screenshot_format="png")
    async with PlaywrightBrowser(config, EnvConfig()) as browser:
        yield browser


async def opened(browser: PlaywrightBrowser, page: str, query: str) -> View:
    async with browser.session(SUITE.resolve(page, query)) as session:
        performed = await session.open()
        assert not performed.navigation_error
        return await session.view()


def environment(view: View) -> EnvironmentState:
    assert view.state.environment is not None
    return view.state.environment


async def test_pages_start(browser: PlaywrightBrowser) -> None:
    pages = SUITE.pages[_PAGES]
    views: dict[str, View] = {}
    waiting = iter(pages)

    async def look() -> None:
        for page in waiting:
            views[page] = await opened(browser, page, "seed=3")

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        group.start_soon(look)
    wrong = {
        page: view.state
        for page, view in views.items()
        if view.blank or environment(view).done or environment(view).reward != -1.0 or len(environment(view).utterance) < 5
    }
    assert wrong == {}
    assert len(views) == len(pages) >= 30


async def test_a_seed_is_a_page(browser: PlaywrightBrowser) -> None:
    for page in ("click-shape", "choose-date", "book-flight", "search-engine"):
        views = [await opened(browser, page, f"seed={seed}") for seed in (7, 8, 7)]
        screenshots = [view.screenshot.data for view in views]
        assert screenshots[0] == screenshots[2] != screenshots[1], page
        assert environment(views[0]).utterance == environment(views[2]).utterance


async def test_the_end_of_a_page_stays_as_it_is(browser: PlaywrightBrowser) -> None:
    async with browser.session(SUITE.resolve("click-dialog", "seed=1")) as session:
        await session.open()
        before = await session.view()
        step = environment(before).action
        assert step is not None
        await session.perform(step)
        over = await session.view()
        assert (environment(over).done, environment(over).reward, environment(over).action) == (True, 1.0, None)
        await session.perform(MIDDLE_OF_AREA)
        assert environment(await session.view()).reward == 1.0
        assert await session.page_values(["WOB_EPISODE_ID", "document.getElementById('sync-task-cover')"]) == ("1", "")


async def test_only_the_page_that_was_asked_for_rewards(browser: PlaywrightBrowser) -> None:
    async with browser.session(SUITE.resolve("use-spinner", "seed=1")) as session:
        await session.open()
        other = SUITE.resolve("click-test", "seed=1").url
        await session.perform(Action(kind=ActionKind.NAVIGATE, text=other))
        assert await session.page_values(["document.querySelector('#subbtn').textContent"]) == ("Click Me!",)
        assert (await session.state()).environment is None


async def test_giving_up_earns_what_failing_earns(tmp_path: Path) -> None:
    ways = (
        Action(kind=ActionKind.WAIT, seconds=0.01),
        Action(kind=ActionKind.ANSWER, text="done"),
        Action(kind=ActionKind.GO_BACK),
        Action(kind=ActionKind.NAVIGATE, text=SUITE.resolve("click-test", "seed=1").url),
    )
    tasks = [
        msgspec.structs.replace(builders.task(f"t{index}", index=index), website="miniwob:click-button?seed=1", max_steps=3)
        for index in range(len(ways))
    ]

    def give_up(observation: Observation) -> Action:
        return next(way for way, task in zip(ways, tasks, strict=True) if task.episode == observation.episode)

    async with playing(tmp_path, give_up, {"miniwob": SUITE}) as bus:
        judgements = await judged(bus, tasks)
    assert [(each.verdict, each.reward) for each in judgements] == [(Verdict.FAILURE, -1.0)] * len(ways)
    outcomes = Counter(each.trajectory.outcome for each in judgements)
    assert outcomes == {Outcome.ANSWERED: 1, Outcome.DONE: 1, Outcome.STEP_LIMIT: 2}


async def test_a_page_has_no_time_limit_but_the_one_that_is_asked_for(browser: PlaywrightBrowser) -> None:
    async with browser.session(SUITE.resolve("click-test", "seed=1")) as session:
        await session.open()
        assert await session.page_values(["core.EPISODE_MAX_TIME"]) == (str(2**31 - 1),)
    async with browser.session(SUITE.resolve("click-test", "seed=1&limit_s=1")) as session:
        await session.open()
        with anyio.fail_after(HANGS_S):
            state = (await session.state()).environment
            while state is not None and not state.done:
                await session.perform(Action(kind=ActionKind.WAIT, seconds=0.5))
                state = (await session.state()).environment
    assert state is not None
    assert (state.done, state.reward) == (True, -1.0)


async def test_a_wide_viewport_shows_the_page_alone() -> None:
    config = BrowserConfig(viewport_width=640, viewport_height=400)
    beside = "document.elementsFromPoint(240, 100).map(e => e.tagName).join()"
    async with PlaywrightBrowser(config, EnvConfig()) as browser, browser.session(SUITE.resolve("click-test", "")) as session:
        await session.open()
        assert await session.page_values([beside]) in (("HTML",), ("BODY,HTML",))


async def test_task_lines_hold_what_the_pages_ask_for(browser: PlaywrightBrowser) -> None:
    lines = await miniwob_tasks(browser, SUITE, ("enter-text", "use-spinner"), range(5, 8), first_id=100)
    assert [line["task_id"] for line in lines] == list(range(100, 106))
    assert [line["website"] for line in lines[2:4]] == ["miniwob:enter-text?seed=7", "miniwob:use-spinner?seed=5"]
    assert [line["difficulty"] for line in lines[2:4]] == [1, 4]
    assert len({line["task_name"] for line in lines}) == 6


async def test_what_pages_ask_for_one_problem_after_the_other_is_what_each_asks_for_alone(browser: PlaywrightBrowser) -> None:
    pages = ("enter-text", "choose-date", "click-checkboxes", "email-inbox", "form-sequence-2", "social-media", "flight.AA")
    for line in await miniwob_tasks(browser, SUITE, pages, (11, 4)):
        page, _, query = str(line["website"]).removeprefix("miniwob:").partition("?")
        assert line["task_name"] == environment(await opened(browser, page, query)).utterance


async def test_a_problem_that_pressing_submit_solves_is_left_out_where_so_many_are_wanted(browser: PlaywrightBrowser) -> None:
    pages, seeds = ("choose-list", "click-checkboxes", "click-button"), range(40)
    every = await miniwob_tasks(browser, SUITE, pages, seeds)
    wanted = await miniwob_tasks(browser, SUITE, pages, seeds, num_each=15)
    assert [sum(line["subdomain"] == page for line in wanted) for page in pages] == [15, 15, 15]
    stays = {str(line["website"]): line["task_name"] for line in every}
    assert all(stays[str(line["website"])] == line["task_name"] for line in wanted)
    press = "[...document.querySelectorAll('button')].at(-1).click() || WOB_RAW_REWARD_GLOBAL"
    for page in ("choose-list", "click-checkboxes"):
        seen = [str(line["website"]) for line in wanted if line["subdomain"] == page]
        left_out = {f"miniwob:{page}?seed={seed}" for seed in range(int(seen[-1].rpartition("=")[2]))} - set(seen)
        assert left_out
        for website in (*left_out, *seen):
            async with browser.session(SUITE.resolve(page, website.partition("?")[2])) as session:
                await session.open()
                (reward,) = await session.page_values([press])
            assert (float(reward) > 0) == (website in left_out)
    with pytest.RaisesGroup(pytest.RaisesExc(PageFailed, match="choose-list asks for something under 7 of 10 seeds")):
        await miniwob_tasks(browser, SUITE, ("choose-list",), range(10), num_each=10)


# through the bus ------------------------------------------------------------------------------------------------------


def claimed(mode: Mode) -> Iterator[tuple[str, int]]:
    """Pages that docs/miniwob.md says are solved under every seed, and one such seed each."""
    rows = json.loads((Path(__file__).parents[2] / "benchmarks/results/miniwob_pages.json").read_text(encoding="utf-8"))[
        "rows"
    ]
    for index, row in enumerate(rows):
        solved, _, tried = row[mode].partition("/")
        if tried and solved == tried:
            yield row["page"], index % int(tried)


def demonstration(index: int, page: str, seed: int) -> Task:
    task = builders.task(f"t{index}", index=index)
    return msgspec.structs.replace(task, website=f"miniwob:{page}?seed={seed}", demonstrate=True, max_steps=30)


@pytest.mark.parametrize("mode", ["coordinates", "set_of_marks"])
async def test_oracles_solve_their_pages(tmp_path: Path, mode: Mode) -> None:
    chosen = list(claimed(mode))[_ORACLES]
    tasks = [demonstration(index, page, seed) for index, (page, seed) in enumerate(chosen)]
    policy = partial(demonstrated_action, mode=mode)
    async with playing(tmp_path, policy, {"miniwob": SUITE}, context=ContextConfig(interaction_mode=mode)) as bus:
        judgements = await judged(bus, tasks)
    unsolved = {
        each.trajectory.task.website: (each.trajectory.outcome, each.reward, each.trajectory.error)
        for each in judgements
        if (each.trajectory.outcome, each.verdict, each.reward) != (Outcome.DONE, Verdict.SUCCESS, 1.0)
    }
    assert unsolved == {}
    assert {each.episode for each in judgements} == {task.episode for task in tasks}
    assert len(tasks) >= 25
