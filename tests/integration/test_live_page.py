"""The live page in a real Chromium, over a monitor that follows a run on a real server."""

import math
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import anyio
import msgspec
import pytest
from playwright.async_api import Browser, Page, expect

from bus import chain
from bus.memory import MemoryBus
from bus.ports import Record
from bus.server.ports import held_port
from bus.server_time import ServerClock
from ops.monitor.alerts.alert import Alert, Condition, Key, Severity
from ops.monitor.state import MonitorState
from ops.monitor.watch import MonitorWatch, monitoring
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import Action, ActionKind, EpisodeStart, Heartbeat, Outcome, Role, Split
from tests import builders
from tests.builders import observation, step_request, task, trajectory
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.browsers.web_pages import launched, opened
from tests.support.runs import archive_world
from tests.support.runs.live_world import CONFIG, LiveRun, serving_live
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SCRIPT = "<img src=x onerror='window.pwned = 1'>"


@dataclass
class World(LiveRun):
    watch: MonitorWatch
    url: str
    browser: Browser


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with launched() as browser:
        yield browser


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.web.live._EVERY_S", 0.1)


@pytest.fixture
async def world(tmp_path: Path, browser: Browser) -> AsyncIterator[World]:
    bounds = replace(CONFIG.monitor_config, raise_after_s=0.1, missing_s=0.1, ended_cell_s=HANGS_S)
    async with (
        running_run(tmp_path) as bus,
        monitoring(bus, SUBJECTS, replace(CONFIG, monitor_config=bounds)) as watch,
        serving_live(watch, bus) as url,
    ):
        with anyio.fail_after(HANGS_S):
            await watch.wait_complete()
        yield World(bus, watch, url, browser)


async def marked(page: Page, wanted: dict[str, str]) -> None:
    """Returns when these are the cells, letter and step by episode, and the legend counts them."""
    await page.wait_for_function(
        """(wanted) => {
          const cells = [...document.querySelectorAll(".cells .cell:not(.free)")];
          return JSON.stringify(cells.map((each) => [each.dataset.episode, each.textContent]).sort()) === wanted;
        }""",
        arg=msgspec.json.encode(sorted(wanted.items())).decode(),
    )


async def counted(page: Page, phase: str, number: int) -> None:
    await expect(page.get_by_role("button", name=re.compile(f"^{phase} "))).to_have_text(re.compile(f"{phase}{number}$"))


async def test_cells_appear_advance_end_and_go(world: World) -> None:
    async with opened(world.browser, world.url) as page:
        await expect(page.get_by_text("No episode is live.")).to_be_visible()
        one, two = await world.admit("t1"), await world.admit("t2")
        first, second = one.episode, two.episode
        await marked(page, {first: "q", second: "q"})
        await counted(page, "queued", 2)
        owner = await world.take(one)
        await marked(page, {first: "O1", second: "q"})
        seq = await owner.observe(observation(one))
        await world.tell(one, "deciding", 0)
        await marked(page, {first: "D1", second: "q"})
        owner.answered(await chain.answer(world.bus, SUBJECTS, seq, step_request(one)))
        await world.tell(one, "acting", 0)
        await marked(page, {first: "A1", second: "q"})
        await owner.observe(observation(one, 1))
        await world.tell(one, "deciding", 1)
        await marked(page, {first: "D2", second: "q"})
        ended = trajectory(one, num_observations=2, num_steps=1)
        await owner.finish(ended)
        await chain.publish_trajectory(world.bus, SUBJECTS, ended)
        await marked(page, {first: "J1", second: "q"})
        await world.judge(ended)
        await marked(page, {first: "S1", second: "q"})
        counts = {phase.value: count for phase, count in world.watch.state.cells.counts().items()}
        for phase, count in counts.items():
            await counted(page, phase, count)
        await expect(page.locator(".metrics div", has_text="judged").first.locator("dd")).to_have_text("1")
        for table, name in (("Success by page or site", "demo:click_button"), ("Success by version", "0")):
            cells = page.get_by_role("table", name=table).locator("tbody td")
            await expect(cells).to_have_text([name, re.compile("100.%"), "1", "1.0"])
        world.watch.state.cells.drop(first)
        await marked(page, {second: "q"})


async def test_an_opened_episode_shows_its_newest_screenshot_and_action_and_follows(world: World) -> None:
    one = await world.admit("t1")
    owner = await world.take(one)
    async with opened(world.browser, world.url) as page:
        panel = page.get_by_role("complementary", name="Episode")
        await page.locator(f".cells [data-episode={one.episode}]").click()
        await expect(panel).to_contain_text("click the button")
        await expect(panel).to_contain_text("Nothing was seen yet.")
        seq = await owner.observe(msgspec.structs.replace(observation(one), screenshot=archive_world.shot(0)))
        await world.tell(one, "deciding", 0)
        await expect(panel.locator("img")).to_have_attribute("src", re.compile(rf"/{one.episode}/1/0$"))
        assert await panel.locator("img").evaluate("(image) => image.naturalWidth") == 16
        await expect(panel.locator(".overlay")).to_have_count(0)
        typed = Action(kind=ActionKind.TYPE, point=(250.0, 500.0), text="brass lamp")
        answer = msgspec.structs.replace(step_request(one), action=typed, response="I will type.", worker=WorkerId("policy-3"))
        owner.answered(await chain.answer(world.bus, SUBJECTS, seq, answer))
        await world.tell(one, "acting", 0)
        await expect(panel.locator(".caption")).to_have_text("type 'brass lamp' at [250, 500]")
        circle = panel.locator(".line circle")
        assert [await circle.get_attribute(name) for name in ("cx", "cy")] == ["4", "6"]
        await expect(panel).to_contain_text("policy-3")
        await owner.observe(msgspec.structs.replace(observation(one, 1), screenshot=archive_world.shot(1)))
        await world.tell(one, "deciding", 1)
        await expect(panel.locator("img")).to_have_attribute("src", re.compile(rf"/{one.episode}/1/1$"))
        await expect(panel.locator(".caption")).to_contain_text("before this page: type")
        await expect(panel).to_contain_text("deciding at step 2 of 9")
        await page.reload()
        await expect(panel).to_contain_text("deciding at step 2 of 9")
        ended = trajectory(one, num_observations=2, num_steps=1, outcome=Outcome.ANSWERED)
        await owner.finish(ended)
        await chain.publish_trajectory(world.bus, SUBJECTS, ended)
        await world.judge(ended)
        await expect(panel).to_contain_text("reward 1")
        await panel.get_by_role("link", name="Every step").click()
        await page.wait_for_url(f"**/episodes/{one.episode}")
        await expect(page.locator(".position")).to_have_text("step 1 of 2")


async def test_filters_stand_in_the_address(world: World) -> None:
    held_out = msgspec.structs.replace(task("t2", split=Split.EVAL), website="https://www.shop.example/lamps")
    one, two = await world.admit("t1"), await world.admit("t2", of=held_out)
    await world.take(one)
    async with opened(world.browser, world.url) as page:
        await marked(page, {one.episode: "O1", two.episode: "q"})
        shown = page.locator(".cells .cell:visible")
        await page.get_by_role("button", name=re.compile("^queued ")).click()
        await expect(shown).to_have_text(["q"])
        await expect(page.get_by_text("1 of 2 shown")).to_be_visible()
        await page.get_by_role("button", name="Show all").click()
        await expect(shown).to_have_count(2)
        for name, value, letters in (
            ("split", "eval", "q"),
            ("site", "shop.example", "q"),
            ("worker", builders.WORKER, "O1"),
        ):
            await page.locator(f"select[name={name}]").select_option(value)
            await expect(shown).to_have_text([letters])
            assert f"{name}={value}" in page.url
            await page.reload()
            await expect(shown).to_have_text([letters])
            await expect(page.locator(f"select[name={name}]")).to_have_value(value)
            await page.get_by_role("button", name="Show all").click()
            await expect(shown).to_have_count(2)


async def test_by_keyboard(world: World) -> None:
    names = [(await world.admit(f"t{number}")).episode for number in range(3)]
    async with opened(world.browser, world.url) as page:
        await marked(page, dict.fromkeys(names, "q"))
        order = await page.locator(".cells .cell").evaluate_all("(cells) => cells.map((each) => each.dataset.episode)")
        await page.keyboard.press("e")
        grid = page.get_by_role("listbox", name="Live episodes")
        await expect(grid).to_be_focused()
        active = page.locator(".cells [aria-selected=true]")
        await expect(active).to_have_attribute("data-episode", order[0])
        await page.keyboard.press("ArrowRight")
        await page.keyboard.press("End")
        await page.keyboard.press("ArrowLeft")
        await expect(active).to_have_attribute("data-episode", order[1])
        await expect(active).to_have_attribute("aria-label", re.compile(r"t\d · queued · for \d+\ss · demo"))
        assert await grid.get_attribute("aria-activedescendant") == await active.get_attribute("id")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("complementary", name="Episode")).to_contain_text(order[1])
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("complementary", name="Episode")).to_be_hidden()
        await expect(grid).to_be_focused()
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog")).to_contain_text("to the episodes")


async def test_alerts_say_what_to_do_and_workers_are_listed(world: World) -> None:
    now = time.time()
    for name, at in (("browser-1", now), ("browser-2", now - 14)):
        figures = {"busy": 5.0, "slots": 8.0, "cost": math.nan}
        beat = Heartbeat(role=Role.JUDGE, worker=WorkerId(name), state="working", note=SCRIPT, at=at, metrics=figures)
        world.watch.state.stored(Record("", "x", 0, beat, at), now)
    hostile = msgspec.structs.replace(task("t1"), instruction=SCRIPT, website=f"https://{SCRIPT}/")
    one = await world.admit("t1", of=hostile)
    owner = await world.take(one)
    seen = msgspec.structs.replace(
        observation(one), screenshot=archive_world.shot(0), title=SCRIPT, url=f"javascript:{SCRIPT}"
    )
    said = msgspec.structs.replace(step_request(one), response=SCRIPT, thought=SCRIPT)
    owner.answered(await chain.answer(world.bus, SUBJECTS, await owner.observe(seen), said))
    async with opened(world.browser, f"{world.url}/live?episode={one.episode}") as page:
        alerts = page.get_by_role("region", name="Alerts")
        await expect(alerts).to_contain_text("docs/operations.md#worker-silent")
        await expect(page).to_have_title(re.compile(r"^\([1-9]\) Live"))
        # Where the test itself takes long, the other one is silent too.
        silent = page.locator(".live-table tr.silent").filter(has_text="browser-2")
        await expect(silent).to_contain_text("busy 5 · slots 8 · cost –")
        await expect(page.get_by_role("table", name="Queues")).to_contain_text("browsers_train")
        panel = page.get_by_role("complementary", name="Episode")
        await expect(panel.get_by_role("heading")).to_have_text(SCRIPT)
        await expect(panel.locator(".url")).to_have_text(f"{SCRIPT} — javascript:{SCRIPT}")
        await panel.get_by_text("What the policy said").click()
        await expect(panel.locator("pre")).to_have_text(SCRIPT)
        await expect(page.locator("main script, main img[onerror]")).to_have_count(0)


async def test_old_news_is_said_and_the_page_comes_back_by_itself(world: World) -> None:
    one = await world.admit("t1")
    async with opened(world.browser, "about:blank") as page, AsyncExitStack() as stack:
        port = stack.enter_context(held_port())
        await page.clock.install()
        async with serving_live(world.watch, world.bus, port=port) as url:
            await page.goto(url)
            await marked(page, {one.episode: "q"})
        await page.clock.fast_forward(20_000)
        await expect(page.get_by_role("alert")).to_contain_text("what is shown is old")
        two = await world.admit("t2")
        async with serving_live(world.watch, world.bus, port=port):
            await marked(page, {one.episode: "q", two.episode: "q"})
            await expect(page.get_by_role("alert")).to_be_hidden()


@pytest.mark.parametrize("dark", [False, True])
async def test_thousands_of_cells_in_a_narrow_window(browser: Browser, dark: bool) -> None:
    """Equal to the state also when most of them are gone, and places were given anew."""
    condition = Condition(key=Key("disk_full", "disk"), severity=Severity.CRITICAL, sentence="x" * 200, remedy="y" * 200)
    state = MonitorState(CONFIG.monitor_config, began_at=0.0)
    watch = SimpleNamespace(state=state, alerts=[Alert(condition=condition, since=1.0)], missing=(), now=ServerClock())
    of = task("t1")
    for number in range(2_500):
        name = EpisodeId(f"e{number}")
        state.heard(Record("", "x", 0, msgspec.structs.replace(of, episode=name)), time.time())
        if number % 2:
            start = EpisodeStart(episode=name, attempt=1, worker=builders.WORKER)
            state.heard(Record("", "x", 0, start), time.time())
    async with (
        serving_live(watch, MemoryBus(SUBJECTS)) as url,
        opened(browser, f"{url}/live", width=360, dark=dark) as page,
    ):
        await expect(page.locator(".cells .cell.opening")).to_have_count(1_250)
        await expect(page.locator(".cells .cell.queued")).to_have_count(1_250)
        assert await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        for number in range(2_500):
            if number % 5:
                state.cells.drop(EpisodeId(f"e{number}"))
        await marked(page, {f"e{number}": "O1" if number % 2 else "q" for number in range(0, 2_500, 5)})
        await expect(page.locator(".cells .cell")).to_have_count(500)
