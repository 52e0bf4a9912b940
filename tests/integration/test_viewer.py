"""The viewer's pages in a real Chromium, over a live run's streams and over an archive; and who may not read them."""

import datetime
import io
import json
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec
import pytest
from PIL import Image
from playwright.async_api import Browser, Page, expect

from bus.ports import Bus
from bus.server.certificates import Authority
from ops.archive.folder import ArchiveFolder
from ops.labels.label_file import LabelFile
from ops.processes.role_process import millrace_environment
from ops.run.folder import RunFolder
from ops.run.joining import join
from ops.web.access import Access
from ops.web.archive_store import ArchiveStore
from ops.web.entrance import entrance
from ops.web.index import EpisodeIndex
from ops.web.query import PAGE_ROWS
from ops.web.serving import Listening
from ops.web.store import Fetched
from ops.web.stream_store import StreamStore
from ops.web.viewer_site import serve_viewer
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId
from schemas.messages import JudgeCall, Observation
from tests import builders
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.browsers.web_pages import launched, opened
from tests.support.runs import archive_world, viewer_world
from tests.support.runs.running_run import running_run
from tests.support.runs.viewer_world import GONE, HOSTILE, LEFT, LINK, RIGHT, SCRIPT, viewing

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
TOKEN = "0123456789abcdef0123456789abcdef"
EPISODES = 12
"""That the world holds."""


@dataclass(frozen=True)
class World:
    bus: Bus
    live: str
    archive: str
    guarded: str
    """Asks for the token."""
    folder: ArchiveFolder
    browser: Browser


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    path = tmp_path_factory.mktemp("viewer")
    run = RunFolder(path / "run")
    async with running_run(run.path) as bus, launched() as browser:
        await archive_world.fill(bus, SUBJECTS)
        await viewer_world.fill(bus, SUBJECTS)
        folder = await archive_world.archive(bus, SUBJECTS, path / "archive")
        async with (
            join(run, run.load(), role="consumer", name="viewer") as consumer,
            viewing(StreamStore(consumer, SUBJECTS)) as live,
            viewing(ArchiveStore(folder), kind="archive") as archive,
            viewing(ArchiveStore(folder), kind="archive", access=Access(token=TOKEN)) as guarded,
        ):
            yield World(bus, live, archive, guarded, folder, browser)


async def listed(page: Page, number: int) -> None:
    await expect(page.locator("tr[data-episode]")).to_have_count(number)


async def test_the_list_shows_every_episode_with_counts(world: World) -> None:
    for url in (world.live, world.archive):
        async with opened(world.browser, f"{url}/") as page:
            assert page.url == f"{url}/episodes"
            await listed(page, EPISODES)
            await expect(page.get_by_role("status")).to_contain_text(
                f"{EPISODES} episodes · 1 of 3 with a verdict succeeded (33"
            )
            first = page.locator("tr[data-episode]").first
            assert await first.get_attribute("data-episode") == GONE


async def test_filters_stand_in_the_address(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes") as page:
        await listed(page, EPISODES)
        await page.get_by_label("Verdict").select_option("failure")
        await listed(page, 2)
        await page.get_by_label("Search").fill("BRASS lamp")
        await listed(page, 1)
        assert "verdict=failure" in page.url
        assert "q=BRASS+lamp" in page.url
        await page.reload()
        await listed(page, 1)
        await expect(page.get_by_label("Verdict")).to_have_value("failure")
        await expect(page.locator(f"tr[data-episode={RIGHT}]")).to_be_visible()
        await page.get_by_role("button", name="Clear").click()
        await listed(page, EPISODES)
        for name, value, number in (("Outcome", "failed", 1), ("Split", "eval", 2), ("Site", "shop.example", 3)):
            await page.get_by_label(name).select_option(value)
            await listed(page, number)
            await page.get_by_role("button", name="Clear").click()
        await page.get_by_label("Reward from").fill("0.5")
        await listed(page, 1)
        await page.get_by_label("Reward from").fill("much")
        await expect(page.get_by_role("alert")).to_contain_text("write one such as min_reward=0.5")


async def test_another_rubric_and_another_order(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes") as page:
        await page.get_by_label("Judged by").select_option("strict-2")
        await expect(page.get_by_role("status")).to_contain_text("1 of 3 with a verdict")
        await page.get_by_role("button", name="steps").click()
        await expect(page.locator("th.steps")).to_have_attribute("aria-sort", "descending")
        await expect(page.locator("td.steps").first).to_have_text("5")
        await page.get_by_role("button", name="steps").click()
        await expect(page.locator("td.steps").first).to_have_text("0")


async def test_the_list_by_keyboard(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes?sort=ended&task=lamp") as page:
        await listed(page, 2)
        await page.keyboard.press("/")
        await expect(page.get_by_label("Search")).to_be_focused()
        await page.keyboard.type("jx")
        await expect(page.get_by_text("No episode is like this")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.get_by_label("Search").fill("")
        await listed(page, 2)
        await page.keyboard.press("Escape")
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await page.keyboard.press("j")
        await expect(page.locator("tr.selected")).to_have_attribute("data-episode", RIGHT)
        await page.keyboard.press("x")
        await page.keyboard.press("k")
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog")).to_contain_text("compare the two chosen")
        await page.keyboard.press("Escape")
        await page.keyboard.press("c")
        await page.wait_for_url("**/compare?**")
        await page.go_back()
        await listed(page, 2)
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/episodes/{LEFT}")


async def test_ten_thousand_episodes_come_a_page_at_a_time(world: World) -> None:
    async with viewing(Many(10_000)) as url, opened(world.browser, f"{url}/episodes") as page:
        await listed(page, PAGE_ROWS)
        await expect(page.get_by_role("status")).to_contain_text("10,000 episodes")
        await expect(page.locator(".what").first).to_have_text("do number 9999")
        await page.keyboard.press("n")
        await expect(page.locator(".what").first).to_have_text("do number 9899")
        assert page.url.endswith("?page=2")
        await page.get_by_role("button", name="last page").click()
        await expect(page.locator(".what").last).to_have_text("do number 0")
        await page.get_by_label("Search").fill("number 4321")
        await listed(page, 1)


class Many:
    """A store of very many short episodes."""

    keeps_calls = False

    def __init__(self, number: int) -> None:
        self._number = number

    async def fill(self, index: EpisodeIndex) -> None:
        of = builders.trajectory(builders.task())
        for number in range(self._number):
            task = msgspec.structs.replace(of.task, episode=EpisodeId(f"m{number}"), instruction=f"do number {number}")
            index.add(msgspec.structs.replace(of, task=task, ended_at=float(number)))
        index.caught_up()
        await anyio.sleep_forever()

    async def episode(self, episode: EpisodeId) -> Fetched | None:
        return None

    async def last_seen(self, episode: EpisodeId, attempt: int) -> Observation | None:
        return None

    async def calls(self, rubric: str, episode: EpisodeId) -> Sequence[JudgeCall]:
        return ()


async def test_the_list_shows_the_last_screenshot_of_each_episode(world: World) -> None:
    for url in (world.live, world.archive):
        async with opened(world.browser, f"{url}/episodes") as page:
            await listed(page, EPISODES)
            shown = page.locator(f"tr[data-episode={LEFT}] .thumb img")
            await expect(shown).to_have_count(1)
            assert await shown.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 16
    async with opened(world.browser, f"{world.live}/episodes") as page:
        gone = page.locator(f"tr[data-episode={GONE}] .thumb")
        await expect(gone).to_have_count(1)
        await expect(gone.locator("img")).to_have_count(0)


async def test_episodes_and_judgements_come_while_the_list_is_open(world: World) -> None:
    late = viewer_world.task(EpisodeId("train-r0001-late-m0"), name="late")
    async with opened(world.browser, f"{world.live}/episodes?task=late") as page:
        await expect(page.get_by_text("No episode is like this")).to_be_visible()
        trajectory = await viewer_world.play(world.bus, SUBJECTS, late, (), at=3_000.0)
        await listed(page, 1)
        await expect(page.locator("td.verdict")).to_have_text("not judged")
        async with opened(world.browser, f"{world.live}/episodes/{late.episode}") as other:
            await expect(other.locator(".stage")).to_contain_text("Nothing was seen")
            await other.get_by_role("tab", name="Judge").click()
            await expect(other.locator(".panel")).to_have_text("No judge has ruled on this episode yet.")
            await viewer_world.judge(world.bus, SUBJECTS, trajectory, 1.0, "Well done.")
            await expect(other.locator(".panel")).to_contain_text("Well done.")
        await expect(page.locator("td.verdict")).to_have_text("success")


async def test_an_episode_step_by_step(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes/{LEFT}#step-2") as page:
        await expect(page.locator(".position")).to_have_text("step 2 of 5")
        await expect(page.locator(".caption")).to_contain_text("drag at [100, 100] to [900, 900]")
        screenshot = page.locator(".stage img")
        assert await screenshot.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 16
        await page.keyboard.press("j")
        await expect(page.locator(".position")).to_have_text("step 3 of 5")
        assert page.url.endswith("#step-3")
        await expect(page.locator(".caption")).to_contain_text("not parsed")
        await page.keyboard.press("ArrowLeft")
        await page.keyboard.press("End")
        await page.get_by_role("button", name="next step").click()
        await expect(page.locator(".position")).to_have_text("step 5 of 5")
        await page.locator(".strip a").first.click()
        await expect(page.locator(".position")).to_have_text("step 1 of 5")
        await expect(page.locator(".panel")).to_contain_text("I will do step 0.")
        await expect(page.locator(".panel")).to_contain_text("another document was loaded")
        await page.keyboard.press("u")
        await listed(page, EPISODES + 1)


@pytest.fixture
def labels(tmp_path: Path) -> LabelFile:
    path = tmp_path / "labels.jsonl"
    lines = [
        {"episode": name, "instruction": f"do {name}", "website": "shop", "success": None} for name in (LEFT, GONE, RIGHT)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return LabelFile(path)


async def test_a_person_labels_one_episode_after_the_other_without_being_told_the_verdict(
    world: World, labels: LabelFile
) -> None:
    async with viewing(ArchiveStore(world.folder), labels=labels) as url, opened(world.browser, f"{url}/") as page:
        assert page.url == f"{url}/label"
        await expect(page.get_by_role("heading")).to_have_text("0 of 3 labelled")
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/episodes/{LEFT}?label")
        await expect(page.get_by_role("region", name="Label")).to_contain_text("0 of 3 labelled")
        await expect(page.get_by_role("tab", name="Answer")).to_be_visible()
        assert await page.get_by_role("tab", name="Judge").count() == 0
        assert await page.locator(".about .pill, .attempts, b.reward").count() == 0
        for tab, shown in (("Task", "steps allowed"), ("Record", "sha256"), ("Answer", "policy version")):
            await page.get_by_role("tab", name=tab).click()
            await expect(page.locator(".panel")).to_contain_text(shown)
            assert "reward" not in await page.locator(".panel").inner_text()
            assert await page.get_by_role("link", name="Download the whole episode").count() == 0
        await page.keyboard.press("j")
        await expect(page.locator(".position")).to_have_text("step 2 of 5")
        await page.get_by_label("Note").fill("seen “twice”")
        await page.get_by_role("button", name="Failure").click()
        for name, key, number in ((GONE, "n", 1), (RIGHT, "s", 1), (GONE, "s", 2)):
            await page.wait_for_url(f"**/episodes/{name}?label")
            await expect(page.get_by_role("region", name="Label")).to_contain_text(f"{number} of 3 labelled")
            await expect(page.locator(".position")).not_to_be_empty()
            await page.keyboard.press(key)
        await page.wait_for_url("**/label")
        await expect(page.get_by_role("heading")).to_have_text("3 of 3 labelled")
        await expect(page.get_by_role("main")).to_contain_text("2 success, 1 failure")
        await page.get_by_role("link", name=f"do {LEFT}").click()
        await expect(page.get_by_role("button", name="Failure")).to_have_attribute("aria-pressed", "true")
        await expect(page.get_by_label("Note")).to_have_value("seen “twice”")
    assert [(label.episode, label.success, label.note) for label in labels.labels()] == [
        (LEFT, False, "seen “twice”"),
        (GONE, True, ""),
        (RIGHT, True, ""),
    ]
    assert [json.loads(line)["website"] for line in labels.path.read_text().splitlines()] == ["shop"] * 3


async def test_labels_are_all_that_is_written_and_only_as_labels(world: World, labels: LabelFile) -> None:
    before = labels.path.read_bytes()

    async def put(url: str, path: str, body: str) -> int:
        head = f"PUT {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        return (await request(url, head, body))[0]

    async with viewing(ArchiveStore(world.folder), labels=labels) as url:
        for path, body, status in (
            (f"/api/labels/{LEFT}", '{"success": "yes"}', 400),
            (f"/api/labels/{LEFT}", "[" * 5_000, 400),
            (f"/api/labels/{LEFT}", "x" * 20_000, 400),
            ("/api/labels/nobody", '{"success": true}', 400),
            ("/api/labels/..%2fx", '{"success": true}', 404),
            (f"/api/episodes/{LEFT}", '{"success": true}', 405),
        ):
            assert await put(url, path, body) == status, (path, body[:40])
        for method in ("OPTIONS", "POST"):
            head = f"{method} /api/labels/{LEFT} HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.example"
            assert (await request(url, f"{head}\r\ncontent-length: 0"))[0] == 405
        assert labels.path.read_bytes() == before
        assert await put(url, f"/api/labels/{LEFT}", '{"success": true}') == 200
    assert await put(world.archive, f"/api/labels/{LEFT}", '{"success": true}') == 405


async def test_actions_are_drawn_where_they_were_done(world: World) -> None:
    async with opened(world.browser, f"{world.archive}/episodes/{LEFT}") as page:
        drawn = page.locator(".stage .overlay.action")
        circle = drawn.locator(".line circle")
        assert [await circle.get_attribute(name) for name in ("cx", "cy")] == ["4", "6"]
        await expect(drawn.locator(".bubble text")).to_have_text("“brass lamp”")
        await page.keyboard.press("j")
        assert (await drawn.locator(".line").first.get_attribute("d") or "").startswith("M1.6 1.2L14.4 10.8")
        await page.keyboard.press("j")
        assert (await drawn.locator(".line").get_attribute("d") or "").startswith("M8 7.6L8 4.4")
        await page.keyboard.press("j")
        box = drawn.locator(".target-box")
        assert [await box.get_attribute(name) for name in ("x", "y", "width", "height")] == ["2", "3", "8", "4"]
        await page.get_by_label("marks").check()
        await expect(page.locator(".stage .mark-number")).to_have_text("7")
        await page.keyboard.press("a")
        await expect(drawn).to_have_count(0)


async def test_tokens_prompt_timing_and_records(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes/{LEFT}#step-2") as page:
        tokens = page.locator(".tokens .token")
        await expect(tokens).to_have_text(["72 ", "105 ", "33 "])
        assert [await token.get_attribute("class") for token in await tokens.all()] == ["token p0", "token p2", "token p4"]
        await expect(page.locator(".tokens .span-start")).to_have_text(["v5", "v6"])
        await tokens.nth(2).hover()
        await expect(page.locator(".told")).to_have_text(
            "Token 3: id 33, probability 0.0101, log-probability -4.6000, version 6"
        )
        await page.get_by_role("tab", name="Prompt").click()
        assert page.url.endswith("#step-2:prompt")
        await expect(page.locator(".message.user").last).to_contain_text("screenshot of step 2")
        await expect(page.locator(".message.assistant")).to_contain_text("I will do step 0.")
        await page.keyboard.press("l")
        await page.keyboard.press("l")
        await expect(page.locator(".panel")).to_contain_text("Whole episode, 5.0 s")
        await expect(page.locator(".panel tr", has_text="policy").first).to_contain_text("40")
        await page.get_by_role("tab", name="Task").click()
        await expect(page.locator(".panel")).to_contain_text("Reference answer")
        await page.get_by_role("tab", name="Record").click()
        await expect(page.locator(".panel pre").first).to_contain_text("sha256")
        async with page.expect_download() as coming:
            await page.get_by_role("link", name="Download").click()
        download = await coming.value
        assert download.suggested_filename == f"{LEFT}.json"
        assert json.loads(await anyio.Path(await download.path()).read_text())["trajectory"]["answer"] == "it is brass"


async def test_an_episode_is_a_film_of_what_was_seen_and_done(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes/{LEFT}#step-2:record") as page:
        await expect(page.locator(".caption .problem")).to_have_text("console: no lamp")
        link = page.get_by_role("link", name="film")
        answer = await page.request.get(f"{world.live}{await link.get_attribute('href')}")
        assert (answer.status, answer.headers["content-type"]) == (200, "image/webp")
        with Image.open(io.BytesIO(await answer.body())) as film:
            assert film.n_frames == 5  # type: ignore[attr-defined]
        missing = await page.request.get(f"{world.live}/api/episodes/no-such/film.webp")
        assert missing.status == 404


async def test_the_judge_stage_by_stage(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes/{LEFT}#step-1:judge") as page:
        stages = page.locator(".ruled.good")
        await expect(stages).to_have_count(2)
        await expect(stages.last).to_contain_text("2 of 3 votes")
        await expect(stages.last).to_contain_text("The answer names the material.")
        await page.locator(".call summary").click()
        await expect(page.locator(".call pre")).to_have_text("Yes: brass.")
        await stages.first.get_by_role("link", name="step 2").click()
        await expect(page.locator(".position")).to_have_text("step 2 of 5")
    async with opened(world.browser, f"{world.archive}/episodes/{LEFT}#step-1:judge") as page:
        await expect(page.locator(".panel")).to_contain_text("An archive does not hold what its models answered.")


async def test_two_attempts_side_by_side(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes/{LEFT}") as page:
        await page.get_by_role("link", name=f"compare with {RIGHT}").click()
        await page.wait_for_url(f"**/compare?a={LEFT}&b={RIGHT}")
        await expect(page.get_by_role("status")).to_contain_text("They part at step 2.")
        names = await page.locator(".side h2 a").all_inner_texts()
        assert len(set(names)) == 2, names
        left, right = await page.locator(".side").all()
        assert await left.evaluate("(one) => one.offsetWidth") == await right.evaluate("(one) => one.offsetWidth")
        await expect(page.locator(".step-pair")).to_have_count(5)
        parted = page.locator(".parted")
        await expect(parted).to_contain_text("same screenshot, different actions")
        await expect(parted.locator(".done")).to_have_text(["drag at [100, 100] to [900, 900]", "click at element 7"])
        await page.keyboard.press("d")
        await expect(parted).to_be_focused()
        await page.keyboard.press("k")
        await expect(page.locator("#step-1")).to_be_focused()
        await expect(page.locator(".step-pair").last.locator(".over")).to_have_text("It was over.")
    async with opened(world.browser, f"{world.live}/compare?a={LEFT}") as page:
        await expect(page.get_by_role("alert")).to_contain_text("no episode's name")


async def test_what_pages_and_models_say_is_text(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes?task=hostile") as page:
        await expect(page.locator(".what")).to_have_text(SCRIPT)
        await page.locator(".what").click()
        await expect(page.locator("h1")).to_have_text(SCRIPT)
        await expect(page.locator(".caption")).to_contain_text(SCRIPT + LINK)
        await expect(page.locator(".panel pre").first).to_have_text(SCRIPT + LINK)
        for tab in ("Prompt", "Judge", "Timing", "Task", "Record"):
            await page.get_by_role("tab", name=tab).click()
            await expect(page.locator(".panel")).not_to_contain_text("Reading")
        links = await page.locator("a").evaluate_all("(all) => all.map((each) => each.protocol)")
        assert set(links) == {"http:"}
        await expect(page.locator("main script")).to_have_count(0)
    async with opened(world.browser, f"{world.live}/compare?a={HOSTILE}&b={LEFT}") as page:
        await expect(page.locator("h1")).to_have_text(SCRIPT)
        await expect(page.get_by_role("status")).to_contain_text("different tasks")


async def test_what_is_gone_says_so(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes/{GONE}") as page:
        await expect(page.get_by_role("alert")).to_contain_text("5 of the 5 records of this episode are no longer kept")
        await expect(page.locator(".stage")).to_contain_text("This screenshot is no longer kept.")
        await page.get_by_role("tab", name="Prompt").click()
        await expect(page.locator(".panel")).to_contain_text("cannot be built again")
        await page.get_by_role("tab", name="Judge").click()
        await expect(page.locator(".panel")).to_contain_text("No judge has ruled on this episode yet.")
    async with opened(world.browser, f"{world.archive}/episodes/never-played") as page:
        await expect(page.get_by_role("alert")).to_contain_text("There is no finished episode never-played here.")


async def test_a_screenshot_that_an_archive_lost_says_so(world: World) -> None:
    async with opened(world.browser, f"{world.archive}/episodes/{RIGHT}") as page:
        shown = await page.request.get(f"{world.archive}/api/episodes/{RIGHT}")
        digest = (await shown.json())["steps"][1]["page"]["screenshot"]["sha256"]
        (lost,) = world.folder.path.glob(f"screenshots/*/{digest}.*")
        kept = lost.rename(lost.with_name("kept"))
        await page.reload()
        await expect(page.get_by_role("alert")).to_contain_text("1.obs.1 cannot be shown")
        await expect(page.locator(".strip .absent")).to_have_count(1)
        kept.rename(lost)


@pytest.mark.parametrize("dark", [False, True])
async def test_narrow_windows_have_no_sideways_scrolling(world: World, dark: bool) -> None:
    paths = ("/episodes", f"/episodes/{LEFT}", f"/episodes/{LEFT}#step-1:judge", f"/compare?a={LEFT}&b={RIGHT}")
    async with opened(world.browser, world.live, width=360, dark=dark) as page:
        for path in paths:
            await page.goto(f"{world.live}{path}")
            await expect(page.locator(".wait")).to_have_count(0)
            assert await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        await page.goto(f"{world.live}/episodes")
        await page.get_by_text("Filters").click()
        await expect(page.get_by_label("Verdict")).to_be_visible()
        paper = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(18, 22, 28)" if dark else "rgb(246, 247, 249)")


async def test_a_token_is_asked_for_once(world: World) -> None:
    async with opened(world.browser, f"{world.guarded}/episodes") as page:
        assert page.url == f"{world.guarded}/login"
        refused = await page.request.get(f"{world.guarded}/api/episodes")
        assert refused.status == 401
        await page.get_by_label("Token").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_have_text("This is not the token.")
        await page.get_by_label("Token").fill(TOKEN)
        await page.keyboard.press("Enter")
        await listed(page, EPISODES)
        (cookie,) = await page.context.cookies()
        assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
        assert TOKEN not in str(cookie)


async def test_over_tls_the_cookie_is_secure(world: World, tmp_path: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)
    Authority.of(tmp_path, now).issue("localhost", tmp_path, now)
    listening = Listening(
        port=0, exact=True, certificate=tmp_path / "server.pem", key=tmp_path / "server.key", name="localhost"
    )
    access = Access(token=TOKEN, tls=True)
    async with (
        viewing(ArchiveStore(world.folder), access=access, listening=listening) as url,
        opened(world.browser, url) as page,
    ):
        assert page.url == f"{url}/login"
        assert url.startswith("https://localhost:")
        await page.get_by_label("Token").fill(TOKEN)
        await page.keyboard.press("Enter")
        await listed(page, EPISODES)
        (cookie,) = await page.context.cookies()
        assert cookie.get("secure") is True


async def request(url: str, lines: str, body: str = "") -> tuple[int, str]:
    """Status and the rest of an answer to a request written out."""
    host, _, port = url.removeprefix("http://").partition(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(f"{lines}\r\nconnection: close\r\n\r\n{body}".encode())
        answer = b""
        with anyio.fail_after(HANGS_S):
            try:
                while True:
                    answer += await stream.receive()
            except anyio.EndOfStream:
                pass
    status, _, rest = answer.decode(errors="replace").partition("\r\n")
    return int(status.split()[1]), rest


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ("GET /api/episodes HTTP/1.1\r\nhost: 127.0.0.1", 200),
        ("GET /api/episodes HTTP/1.1\r\nhost: evil.example", 421),
        ("POST /api/episodes HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0", 405),
        ("DELETE /episodes HTTP/1.1\r\nhost: localhost", 405),
        ("GET /static/../application.py HTTP/1.1\r\nhost: localhost", 404),
        ("GET /static/%2e%2e/access.py HTTP/1.1\r\nhost: localhost", 404),
        ("GET /static/..%2f..%2f..%2fpyproject.toml HTTP/1.1\r\nhost: localhost", 404),
        ("GET /static//etc/passwd HTTP/1.1\r\nhost: localhost", 404),
        ("GET /api/episodes/..%2f..%2fconfig.yaml HTTP/1.1\r\nhost: localhost", 404),
        (f"GET /api/screenshots/{'0' * 64}/{LEFT}/0 HTTP/1.1\r\nhost: localhost", 404),
        (f"GET /api/episodes/{LEFT}/steps/99/raw HTTP/1.1\r\nhost: localhost", 404),
        ("GET /api/episodes/*.%3E HTTP/1.1\r\nhost: localhost", 400),
    ],
)
async def test_every_answer_carries_the_headers_and_nothing_else_is_served(world: World, lines: str, status: int) -> None:
    answered, rest = await request(world.live, lines)
    assert answered == status, rest
    assert "content-security-policy: default-src 'self';" in rest
    assert "x-content-type-options: nosniff" in rest
    assert "root:" not in rest


async def test_screenshots_never_change_and_records_are_asked_for_anew(world: World) -> None:
    async with opened(world.browser, f"{world.live}/episodes/{LEFT}") as page:
        detail = await page.request.get(f"{world.live}/api/episodes/{LEFT}")
        assert detail.headers["cache-control"] == "no-store"
        url = (await detail.json())["steps"][0]["page"]["screenshot"]["url"]
        screenshot = await page.request.get(f"{world.live}{url}")
        assert screenshot.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert screenshot.headers["content-type"] == "image/png"


async def test_the_command_says_where_it_listens_and_ends_cleanly(world: World) -> None:
    command = [sys.executable, "-m", "ops.cli", "view", str(world.folder.path)]
    async with await anyio.open_process(command, env=millrace_environment()) as process:
        try:
            with anyio.fail_after(HANGS_S):
                assert process.stdout is not None
                url = (await process.stdout.receive()).decode().split()[0]
            async with opened(world.browser, f"{url}episodes") as page:
                await listed(page, EPISODES)
                process.send_signal(signal.SIGINT)
                with anyio.fail_after(HANGS_S):
                    assert await process.wait() == 130
            assert process.stderr is not None
            with pytest.raises(anyio.EndOfStream):
                await process.stderr.receive()
        finally:
            if process.returncode is None:
                process.kill()


async def test_what_a_person_must_mend_is_said_before_anything_listens(world: World, tmp_path: Path) -> None:
    taken = int(world.live.rpartition(":")[2])
    cert = tmp_path / "cert.pem"
    cert.write_text("no certificate")
    for path, given, said in (
        (tmp_path, Listening(), "holds neither an archive nor a run"),
        (world.folder.path, Listening(host="0.0.0.0"), "give --tls-cert and --tls-key"),
        (world.folder.path, Listening(certificate=cert), "belong together"),
        (world.folder.path, Listening(certificate=cert, key=cert), "cannot be used"),
        (world.folder.path, Listening(port=taken, exact=True), "choose another port"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            await one_error(path, given)


async def one_error(path: Path, listening: Listening) -> None:
    """Its own error, out of the groups that tasks wrap it in."""
    try:
        await serve_viewer(path, entrance(listening))
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            (error,) = error.exceptions
        raise error from group
