"""Frozen lakes and Sokoban rooms in a real Chromium: what they show, what each move earns, and oracles that solve them."""

import random
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from agents.demonstration import Mode, demonstrated_action
from agents.page_text import current_page
from browser_workers.browser import EnvironmentState, Session
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.grids.cells import DIRECTIONS, neighbours
from browser_workers.suites.frozen_lake import FrozenLakeSuite
from browser_workers.suites.frozen_lake.lake import draw_lake
from browser_workers.suites.sokoban import SokobanSuite
from browser_workers.suites.sokoban.room import draw_room
from browser_workers.suites.sokoban.search import best_move, boxes_of, mask, moved, position
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind, Judgement, Outcome, Task, Verdict
from tests import builders
from tests.support.browsers.page_plays import judged, playing
from tests.support.browsers.patience import wait_for_pages

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SUITES = {"frozen_lake": FrozenLakeSuite(), "sokoban": SokobanSuite()}
MARKS = ContextConfig(interaction_mode="set_of_marks", accessibility_tree=True)


def key(direction: int) -> Action:
    return Action(kind=ActionKind.PRESS, keys=(f"Arrow{DIRECTIONS[direction].capitalize()}",))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_pages(monkeypatch)


@pytest.fixture
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    config = BrowserConfig(viewport_width=160, viewport_height=210, screenshot_format="png")
    async with PlaywrightBrowser(config, EnvConfig(), MARKS) as browser:
        yield browser


async def environment(session: Session) -> EnvironmentState:
    state = (await session.state()).environment
    assert state is not None
    return state


async def rewards(session: Session, directions: list[int]) -> list[float]:
    """What the page's reward rose by at each move."""
    earned, before = [], (await environment(session)).reward
    for direction in directions:
        await session.perform(key(direction))
        now = (await environment(session)).reward
        earned.append(now - before)
        before = now
    return earned


# pages ----------------------------------------------------------------------------------------------------------------


async def test_a_seed_is_a_page(browser: PlaywrightBrowser) -> None:
    for name, suite in SUITES.items():
        screenshots = []
        for seed in (7, 8, 7):
            async with browser.session(suite.resolve(suite.page, f"seed={seed}")) as session:
                await session.open()
                screenshots.append((await session.view()).screenshot.data)
        assert screenshots[0] == screenshots[2] != screenshots[1], name


@pytest.mark.parametrize(
    ("website", "query", "rows"),
    [
        ("frozen_lake", "seed=3", "__G_ O_O_ __O_ @___"),
        ("sokoban", "seed=3", "###### ##___# #._$_# #_@_## #__### ######"),
        ("sokoban", "seed=3&size=8&boxes=3", "######## ##_##_## #___#__# #._#___# #$@__#_# #_$..$_# #______# ########"),
    ],
)
async def test_a_model_that_reads_is_told_the_map(browser: PlaywrightBrowser, website: str, query: str, rows: str) -> None:
    suite = SUITES[website]
    for text, shown in (("on", True), ("off", False)):
        async with browser.session(suite.resolve(suite.page, f"{query}&text={text}")) as session:
            await session.open()
            view = await session.view()
        seen = msgspec.structs.replace(
            builders.observation(builders.task()), elements=view.elements, accessibility_tree=view.accessibility_tree
        )
        lines = current_page(seen, MARKS)
        buttons = [f'[{number}] button "{name}"' for number, name in enumerate(("Left", "Up", "Down", "Right"), 1 + shown)]
        board = [f'[1] div[role=img] "{rows}"'] if shown else []
        assert lines[: 5 + shown] == ["Elements:", *board, *buttons]
        assert (f'  image "{rows}"' in lines) is shown, "in the accessibility tree as well"


async def test_the_map_follows_the_figure(browser: PlaywrightBrowser) -> None:
    async with browser.session(SUITES["frozen_lake"].resolve("lake", "seed=3&text=on")) as session:
        await session.open()
        await session.perform(key(0))
        assert (await session.view()).elements[0].text == "__G_ O_O_ @_O_ ____"


async def test_only_the_level_that_was_asked_for_rewards(browser: PlaywrightBrowser) -> None:
    suite = SUITES["frozen_lake"]
    async with browser.session(suite.resolve("lake", "seed=3")) as session:
        await session.open()
        await session.perform(Action(kind=ActionKind.NAVIGATE, text=suite.resolve("lake", "seed=3&size=3").url))
        assert (await session.state()).environment is None


# rewards --------------------------------------------------------------------------------------------------------------


async def test_a_lake_rewards_every_move(browser: PlaywrightBrowser) -> None:
    """`__G_ O_O_ __O_ @___`: into the edge twice, then into a hole."""
    terms = "step_reward=-0.01&idle_reward=-0.1&hole_reward=-0.5"
    async with browser.session(SUITES["frozen_lake"].resolve("lake", f"seed=3&{terms}")) as session:
        await session.open()
        assert await rewards(session, [3, 2, 0, 0]) == pytest.approx([-0.11, -0.11, -0.01, -0.51])
        state = await environment(session)
        assert (state.done, state.success) == (True, False)
        assert await rewards(session, [0]) == [0], "an episode that is over stays as it is"


async def test_a_lake_rewards_what_comes_nearer_to_its_flag(browser: PlaywrightBrowser) -> None:
    """`__G_ O_O_ __O_ @___`: into the edge, up, back down, up, right, up, and into a hole."""
    terms = "step_reward=-0.01&approach_reward=0.5"
    async with browser.session(SUITES["frozen_lake"].resolve("lake", f"seed=3&{terms}")) as session:
        await session.open()
        expected = [-0.01, 0.49, -0.51, 0.49, 0.49, 0.49, -0.51]
        assert await rewards(session, [3, 0, 2, 0, 1, 0, 3]) == pytest.approx(expected)
    async with browser.session(SUITES["frozen_lake"].resolve("lake", f"seed=3&{terms}")) as session:
        await session.open()
        assert await rewards(session, [0, 1, 0, 0, 1]) == pytest.approx([0.49, 0.49, 0.49, 0.49, 1.49])


async def test_a_room_rewards_boxes_on_goals_and_off_them(browser: PlaywrightBrowser) -> None:
    """Some moves at random, among them a push onto a goal and one off it, then the shortest way on."""
    room, draw = draw_room(28, size=6, num_boxes=2, min_moves=4, max_moves=12), random.Random(35)
    here, at, directions, expected = position(room.player, room.boxes), 0, [], []
    for number in range(100):
        direction = draw.randrange(4) if number < 8 else best_move(6, room.walls, room.goals, here)
        if direction is None:
            break
        there = moved(6, mask(room.walls), here, direction)
        num_on_goals = len(boxes_of(there) & room.goals)
        directions.append(direction)
        expected.append(-0.01 - 0.1 * (here == there) + 0.25 * (num_on_goals - at) + (num_on_goals == 2))
        here, at = there, num_on_goals
    assert {0.24, -0.26, -0.11} <= {round(earned, 2) for earned in expected}
    terms = "step_reward=-0.01&idle_reward=-0.1&box_reward=0.25"
    async with browser.session(SUITES["sokoban"].resolve("room", f"seed=28&boxes=2&{terms}")) as session:
        await session.open()
        assert await rewards(session, directions) == pytest.approx(expected)
        state = await environment(session)
    assert (state.done, state.success) == (True, True)


async def test_the_ice_slides_as_its_seed_says(browser: PlaywrightBrowser) -> None:
    lake = draw_lake(0, size=8, holes=0.0, slip=2 / 3, min_moves=8)
    at, expected, directions = lake.start, [], [0, 1, 2, 3] * 6
    for direction, slide in zip(directions, lake.slides, strict=False):
        at = neighbours(8)[at][(direction + slide) % 4]
        expected.append(at)
        if at == lake.goal:
            break
    async with browser.session(SUITES["frozen_lake"].resolve("lake", "size=8&holes=0&slip=2/3")) as session:
        await session.open()
        stood: list[str] = []
        for direction in directions[: len(expected)]:
            await session.perform(key(direction))
            stood += await session.page_values(["millraceStand().state.player"])
    assert [int(cell) for cell in stood] == expected


# through the bus ------------------------------------------------------------------------------------------------------

PLAYED = (
    *(f"frozen_lake:lake?seed={seed}" for seed in range(4)),
    "frozen_lake:lake?seed=1&size=8&text=on",
    "frozen_lake:lake?seed=2&controls=keys&step_reward=-0.1",
    "frozen_lake:lake?seed=3&step_reward=-0.1&text=on",
    *(f"sokoban:room?seed={seed}" for seed in range(4)),
    "sokoban:room?seed=1&boxes=2&text=on",
    "sokoban:room?seed=2&controls=keys&step_reward=-0.1",
    "sokoban:room?seed=3&step_reward=-0.1&text=on",
)


def demonstration(index: int, website: str) -> Task:
    return msgspec.structs.replace(builders.task(f"t{index}", index=index), website=website, demonstrate=True, max_steps=30)


@pytest.mark.parametrize("mode", ["coordinates", "set_of_marks"])
async def test_oracles_solve_their_levels(tmp_path: Path, mode: Mode) -> None:
    tasks = [demonstration(index, website) for index, website in enumerate(PLAYED)]
    policy = partial(demonstrated_action, mode=mode)
    context = ContextConfig(interaction_mode=mode, actions="extended")
    async with playing(tmp_path, policy, SUITES, context=context) as bus:
        found = {each.trajectory.task.website: each for each in await judged(bus, tasks)}
    assert found.keys() == set(PLAYED)
    assert {(each.verdict, each.trajectory.outcome) for each in found.values()} == {(Verdict.SUCCESS, Outcome.DONE)}
    for website, each in found.items():
        _, _, query = website.partition("?")
        level = SUITES[each.trajectory.task.website.partition(":")[0]].level(query)
        assert each.trajectory.num_steps == level.num_moves, website
        _earned_as_written(each, step=-0.1 if "step_reward" in website else 0.0)


def _earned_as_written(judgement: Judgement, *, step: float) -> None:
    num_steps = judgement.trajectory.num_steps
    assert judgement.reward == pytest.approx(1 + step * num_steps)
    if step:
        assert judgement.step_rewards == pytest.approx([step] * (num_steps - 1) + [1 + step])
    else:
        assert judgement.step_rewards == (), "all of it was earned by the end"
