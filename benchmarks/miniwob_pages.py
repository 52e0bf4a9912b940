"""Every MiniWoB++ page in a real browser: does it start, what does it accept, how does it end, can its oracle solve it.

    python -m benchmarks.miniwob_pages

Writes benchmarks/results/miniwob_pages.json and the table in docs/miniwob.md. `played`: actions drawn at random, on the page's
elements for the most part, until the page ends with its own reward; a page that no action has ended after `ACTIONS` of them
ends by its own time limit, which gives -1.
"""

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
import structlog

from agents.demonstration import Mode, demonstrated_action
from benchmarks.report import RESULTS
from browser_workers.browser import Box, Session, View
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.suites.miniwob.suite import MiniWobSuite
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.errors import PolicyError
from schemas.ids import EpisodeId
from schemas.messages import Action, ActionKind, Observation
from tests.support.texts.miniwob_table import write_table

ACTIONS = 40
"""Random actions that a page gets."""
_LIMIT_S = 8
_ORACLE_STEPS = 30
_SLOTS = 4
_MODES: tuple[Mode, ...] = ("coordinates", "set_of_marks")
_SMALL, _FLIGHT = (160, 210), (540, 670)
_PLACES = """JSON.stringify([...(document.getElementById('wrap')?.contentDocument ?? document).querySelectorAll(
  '#area *, form *')].filter(e => e.matches('button, input, select, textarea, a, li, span, svg *, canvas, [class]'))
  .map(e => e.getBoundingClientRect()).filter(b => b.width && b.height && b.top < innerHeight && b.left < innerWidth)
  .slice(0, 80).map(b => [b.left, b.top, b.width, b.height].map(Math.round)))"""
_KINDS = (
    *[ActionKind.CLICK] * 8,
    ActionKind.TYPE,
    ActionKind.HOVER,
    ActionKind.SCROLL,
    ActionKind.DOUBLE_CLICK,
    ActionKind.RIGHT_CLICK,
    ActionKind.DRAG,
    ActionKind.PRESS,
)


@dataclass(frozen=True)
class PageRow:
    page: str
    starts: bool
    """Its first screenshot is not blank."""
    given: int
    accepted: int
    """Of the actions that were given."""
    ended_by: str
    reward: float | None
    """The page's own."""
    coordinates: str
    """Seeds that the oracle solved, of those tried, by coordinates; empty without an oracle."""
    set_of_marks: str
    """The same by the numbers of marked elements."""


class Pages:
    """Plays the pages of one viewport."""

    def __init__(self, browsers: dict[Mode, PlaywrightBrowser], size: tuple[int, int], seeds: int) -> None:
        self._browsers = browsers
        self._suite = MiniWobSuite()
        self._size = size
        self._seeds = range(seeds)

    async def row(self, page: str) -> PageRow:
        rng = random.Random(page)
        opening = self._suite.resolve(page, f"seed=1&limit_s={_LIMIT_S}")
        async with self._browsers["coordinates"].session(opening) as session:
            await session.open()
            starts = not (await session.view()).blank
            given = accepted = 0
            while given < ACTIONS and not await _over(session):
                performed = await session.perform(await self._random_action(session, rng))
                given, accepted = given + 1, accepted + (not performed.refused)
            acted = await _over(session)
            with anyio.move_on_after(_LIMIT_S + 5):
                while not await _over(session):
                    await session.perform(Action(kind=ActionKind.WAIT, seconds=0.3))
            state = (await session.state()).environment
            (reason,) = await session.page_values(["WOB_REWARD_REASON"])
        over = state is not None and state.done
        ended_by = "its time limit" if reason == "timed out" else "an action" if acted else "itself"
        solved = {mode: await self._oracle(mode, page) for mode in _MODES}
        return PageRow(
            page=page,
            starts=starts,
            given=given,
            accepted=accepted,
            ended_by=ended_by if over else "nothing",
            reward=round(state.reward, 3) if over and state is not None else None,
            **solved,
        )

    async def _random_action(self, session: Session, rng: random.Random) -> Action:
        places: list[Box] = json.loads((await session.page_values([_PLACES]))[0] or "[]")
        kind = rng.choice(_KINDS)
        if kind is ActionKind.PRESS:
            return Action(kind=kind, keys=(rng.choice(("Tab", "Enter", "ArrowDown", "Escape")),))
        point, end_point = self._place(places, rng), self._place(places, rng) if kind is ActionKind.DRAG else None
        return Action(kind=kind, point=point, end_point=end_point, text=rng.choice(("3", "hello", "10/10/2016")))

    def _place(self, places: Sequence[Box], rng: random.Random) -> tuple[float, float]:
        width, height = self._size
        if not places or rng.random() < 0.15:
            return rng.uniform(0, 1000), rng.uniform(250, 1000)
        x, y, w, h = rng.choice(places)
        return min(max((x + w / 2) / width, 0.0), 1.0) * 1000, min(max((y + h / 2) / height, 0.0), 1.0) * 1000

    async def _oracle(self, mode: Mode, page: str) -> str:
        solved = [await self._solve(mode, page, seed) for seed in self._seeds]
        if None in solved:
            return ""
        return f"{solved.count(1.0)}/{len(solved)}"

    async def _solve(self, mode: Mode, page: str, seed: int) -> float | None:
        """The reward of the oracle; None where there is none, 0 where it cannot act in this mode."""
        async with self._browsers[mode].session(self._suite.resolve(page, f"seed={seed}")) as session:
            await session.open()
            for step in range(_ORACLE_STEPS):
                view = await session.view()
                state = view.state.environment
                assert state is not None
                if state.done:
                    return state.reward
                if state.action is None:
                    return None if step == 0 else 0.0
                try:
                    await session.perform(demonstrated_action(_observation(view), mode))
                except PolicyError:
                    return 0.0
            return 0.0


async def _over(session: Session) -> bool:
    state = (await session.state()).environment
    return state is not None and state.done


def _observation(view: View) -> Observation:
    state = view.state.environment
    assert state is not None
    return Observation(
        episode=EpisodeId("benchmark"),
        attempt=1,
        step=0,
        screenshot=view.screenshot,
        url=view.state.url,
        title=view.state.title,
        elements=view.elements,
        oracle=state.target,
        oracle_action=state.action,
    )


async def play_all(pages: Sequence[str], size: tuple[int, int], seeds: int) -> list[PageRow]:
    config, env = BrowserConfig(viewport_width=size[0], viewport_height=size[1]), EnvConfig()
    rows: dict[str, PageRow] = {}
    waiting = iter(pages)
    async with (
        PlaywrightBrowser(config, env, ContextConfig(interaction_mode="coordinates")) as plain,
        PlaywrightBrowser(config, env, ContextConfig(interaction_mode="set_of_marks")) as marked,
    ):
        player = Pages({"coordinates": plain, "set_of_marks": marked}, size, seeds)

        async def work() -> None:
            for page in waiting:
                rows[page] = await player.row(page)
                print(rows[page], flush=True)

        async with anyio.create_task_group() as group:
            for _ in range(_SLOTS):
                group.start_soon(work)
    return [rows[page] for page in pages]


async def main(only: Sequence[str], seeds: int) -> None:
    pages = only or MiniWobSuite().pages
    small = [page for page in pages if not page.startswith("flight.")]
    flights = [page for page in pages if page.startswith("flight.")]
    rows = await play_all(small, _SMALL, seeds) + await play_all(flights, _FLIGHT, seeds)
    rows.sort(key=lambda row: row.page)
    if not only:
        content = {"rows": [asdict(row) for row in rows]}
        (RESULTS / "miniwob_pages.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        write_table(Path(__file__).parents[1] / "docs" / "miniwob.md")


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    anyio.run(main, options.pages, options.seeds)
