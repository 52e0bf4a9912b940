"""Frames that Chromium runs in processes of their own: what is in them is seen and reached as in any other."""

import re
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import pytest
from playwright.async_api import Route

from browser_workers.browser import Opening
from browser_workers.chromium import accessibility, document_elements, endless_scripts, page_frames
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.calls import Calls, NoAnswer
from browser_workers.chromium.process import launch
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.site import Documents
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind, Element
from tests.deadlines import HANGS_S
from tests.support.browsers.patience import wait_for_pages

T = TypeVar("T")
pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SIZE = (400, 300)
HEAD = "<!doctype html><style>body{margin:0;font:16px sans-serif}.at{position:absolute;box-sizing:border-box}</style>"
TOP, CONSENT, ADVERT = "http://top.test", "http://consent.test", "http://advert.test"


def frame(url: str, left: int, top: int, width: int = 200, height: int = 100) -> str:
    return f"<iframe class=at src={url} style='left:{left}px;top:{top}px;width:{width}px;height:{height}px;border:0'></iframe>"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    """One that isolates sites, which a whole Chromium does by itself. A busy machine leaves out nothing."""
    config = BrowserConfig(viewport_width=SIZE[0], viewport_height=SIZE[1])
    context = ContextConfig(interaction_mode="set_of_marks", accessibility_tree=True)
    with pytest.MonkeyPatch.context() as patch:
        wait_for_pages(patch)
        patch.setattr(launch, "_ARGUMENTS", (*launch._ARGUMENTS, "--site-per-process"))
        patch.setattr(page_frames, "_ANSWER_S", HANGS_S)
        patch.setattr(accessibility, "_TREE_S", HANGS_S)
        patch.setattr(document_elements, "_SCAN_BUDGET_MS", 1000 * HANGS_S)
        async with PlaywrightBrowser(
            config, EnvConfig(use_rich_actree=True, operation_timeout=HANGS_S / 4), context
        ) as browser:
            yield browser


@asynccontextmanager
async def opened(browser: PlaywrightBrowser, top: str, **others: str) -> AsyncIterator[PlaywrightSession]:
    """`top` at its site, which has further documents too; pages of other sites by their first label."""

    async def fulfil(route: Route) -> None:
        site = route.request.url.removeprefix("http://").partition(".")[0]
        await route.fulfill(body=HEAD + others[site], content_type="text/html")

    site = Documents(origin=TOP, documents={"/": (HEAD + top).encode(), "/own": (HEAD + others.get("own", "")).encode()})
    async with browser.session(Opening(url=f"{TOP}/", site=site, quiet_s=0.0)) as session:
        session.context.set_default_timeout(1000 * HANGS_S)
        for host in (CONSENT, ADVERT):
            await session.context.route(f"{host}/**", fulfil)
        await session.open()
        yield session


def named(elements: tuple[Element, ...]) -> list[tuple[str, str]]:
    return [(each.tag, each.text) for each in elements]


async def hang(session: PlaywrightSession) -> None:
    """The process of the first frame answers nobody from now on."""
    inner = (await session._windows.active()).page.frames[1]
    await inner.evaluate("setTimeout(() => { for (;;) {} }, 0)")
    with anyio.fail_after(HANGS_S):
        is_silent = False
        while not is_silent:
            with anyio.move_on_after(1.0) as patience:
                await inner.evaluate("0")
            is_silent = patience.cancelled_caught


def click(number: int) -> Action:
    return Action(kind=ActionKind.CLICK, element=number)


async def test_marks_and_tree_reach_into_every_process(browser: PlaywrightBrowser) -> None:
    advert = "<button class=at style='left:10px;top:10px;width:80px;height:20px'>Buy</button>"
    own = "<button class=at style='left:0;top:0;width:60px;height:20px'>Own</button>"
    consent = (
        "<title>Consent</title><button class=at style='left:20px;top:10px;width:100px;height:30px'>Agree</button>"
        + frame(f"{ADVERT}/", 0, 50, 200, 40)
        + "<button class=at style='top:500px'>below</button>"
    )
    top = "<button class=at style='left:0;top:0;width:50px;height:20px'>First</button>"
    top += frame(f"{CONSENT}/", 100, 40) + frame("/own", 0, 200) + "<p class=at style='top:150px'>words</p>"
    async with opened(browser, top, consent=consent, advert=advert, own=own) as session:
        seen = await session.view()
        assert len({root.frame for root in (await session._windows.active()).frames._roots.values()}) == 2
        assert named(seen.elements) == [("button", each) for each in ("First", "Agree", "Buy", "Own")]
        assert [each.box for each in seen.elements] == [
            (0, 0, 50, 20),
            (120, 50, 100, 30),
            (110, 100, 80, 20),
            (0, 200, 60, 20),
        ]
        assert seen.accessibility_tree.split("\n") == [
            "document",
            '  [1] button "First" box=[0, 0, 125, 67]',
            "  frame",
            '    document "Consent"',
            '      [2] button "Agree" box=[300, 167, 250, 100]',
            "      frame",
            "        document",
            '          [3] button "Buy" box=[275, 333, 200, 67]',
            '      button "below"',
            "  frame",
            "    document",
            '      [4] button "Own" box=[0, 667, 150, 67]',
            '  text "words"',
        ]


async def test_clicks_keys_and_options_reach_into_another_process(browser: PlaywrightBrowser) -> None:
    consent = """<button class=at style='top:10px;width:100px;height:30px' onclick='this.textContent = "agreed"'>Agree</button>
    <input class=at style='top:50px;width:100px;height:20px' aria-label=Name>
    <select class=at style='top:400px;width:100px;height:20px' title=Size><option>small<option>large</select>
    <div style='height:1000px'></div>"""
    async with opened(browser, frame(f"{CONSENT}/", 100, 40), consent=consent) as session:
        await session.view()
        await session.perform(click(1))
        await session.perform(Action(kind=ActionKind.TYPE, element=2, text="Ada", enter=False))
        seen = await session.view()
        assert named(seen.elements) == [("button", "agreed"), ("input[type=text]", "Name: Ada")]
        frames = (await session._windows.active()).page.frames
        await frames[1].evaluate("scrollTo(0, 380)")
        seen = await session.view()
        assert named(seen.elements) == [("select", "Size: small")]
        await session.perform(Action(kind=ActionKind.SELECT, element=1, text="large"))
        assert named((await session.view()).elements) == [("select", "Size: large")]


@pytest.mark.parametrize(
    ("style", "point"),
    [
        ("", (100, 130)),
        ("transform:scale(.5);transform-origin:0 0", (75, 95)),
        ("zoom:.5", (50, 65)),
        ("transform:rotate(90deg)", (130, 60)),
        ("border:9px solid;padding:5px", (114, 144)),
    ],
)
async def test_an_option_is_chosen_however_its_frame_is_shown(
    browser: PlaywrightBrowser, style: str, point: tuple[int, int]
) -> None:
    options = "<option>small<option>large</select>"
    selects = (
        f"<select id={each} class=at style='top:{top}px;width:100px;height:20px'>" for each, top in (("a", 20), ("b", 60))
    )
    top = frame(f"{CONSENT}/", 50, 60).replace("border:0", f"border:0;{style}")
    async with opened(browser, top, consent="".join(each + options for each in selects)) as session:
        on_grid = point[0] / SIZE[0] * 1000, point[1] / SIZE[1] * 1000
        performed = await session.perform(Action(kind=ActionKind.SELECT, point=on_grid, text="large"))
        chosen = await (await session._windows.active()).page.frames[1].evaluate("[a.value, b.value]")
        assert (performed.refused, chosen) == ("", ["small", "large"])


async def test_what_lies_out_of_view_in_another_process_is_scrolled_to(browser: PlaywrightBrowser) -> None:
    consent = (
        "<button class=at style='top:600px' onclick='this.textContent = \"agreed\"'>Agree</button><p style='height:2000px'>"
    )
    top = "<div style='height:3000px'></div>" + frame(f"{CONSENT}/", 0, 1000)
    async with opened(browser, top, consent=consent) as session:
        tab = await session._windows.active()
        assert not (await session.view()).elements
        await tab.page.evaluate("scrollTo(0, 950)")
        await tab.page.frames[1].evaluate("scrollTo(0, 580)")
        assert named((await session.view()).elements) == [("button", "Agree")]
        await tab.page.evaluate("scrollTo(0, 0)")
        await tab.page.frames[1].evaluate("scrollTo(0, 0)")
        await session.perform(click(1))
        assert named((await session.view()).elements) == [("button", "agreed")]


async def test_a_frame_that_changes_its_process_is_followed(browser: PlaywrightBrowser) -> None:
    texts = {"own": "<button>Own</button>", "consent": "<button>Agree</button>", "advert": "<button>Buy</button>"}
    async with opened(browser, frame("/own", 100, 40), **texts) as session:
        tab = await session._windows.active()
        assert named((await session.view()).elements) == [("button", "Own")]
        for url, name in ((f"{CONSENT}/", "Agree"), (f"{ADVERT}/", "Buy"), (f"{TOP}/own", "Own"), (f"{CONSENT}/", "Agree")):
            async with tab.page.expect_event("framenavigated"):
                await tab.page.evaluate(f"document.querySelector('iframe').src = '{url}'")
            await tab.page.frames[1].wait_for_load_state()
            seen = await session.view()
            assert named(seen.elements) == [("button", name)]
            assert f'button "{name}"' in seen.accessibility_tree


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> str:
    """Scripts are ended soon, which the policy is told in words that match this."""
    monkeypatch.setattr(endless_scripts, "_SCRIPT_S", 1.0)
    return r"a frame's script did not return within 1 s and was ended( \(\d+ times\))?"


async def test_a_click_that_never_returns_in_another_process_ends_the_script(
    browser: PlaywrightBrowser, impatient: str
) -> None:
    consent = "<button class=at style='inset:20px' onclick='for (;;) {}'>Agree</button>"
    async with opened(browser, frame(f"{CONSENT}/", 100, 40), consent=consent) as session:
        with anyio.fail_after(HANGS_S):
            performed = await session.perform(Action(kind=ActionKind.CLICK, point=(500, 300)))
        assert re.fullmatch(impatient, performed.notice), performed
        assert named((await session.view()).elements) == [("button", "Agree")]


async def test_an_input_over_a_frame_that_hangs_ends_its_script(browser: PlaywrightBrowser, impatient: str) -> None:
    top = "<p style='height:2000px'>" + frame(f"{ADVERT}/", 100, 100)
    async with opened(browser, top, advert="<p>words") as session:
        await (await session._windows.active()).frames.roots()
        await hang(session)
        with anyio.fail_after(HANGS_S):
            performed = await session.perform(Action(kind=ActionKind.SCROLL, direction="down"))
        assert re.fullmatch(impatient, performed.notice), performed


async def test_a_process_that_does_not_answer_costs_one_deadline(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endless_scripts, "_SCRIPT_S", HANGS_S)
    top = "<button class=at style='left:0;top:0;width:50px;height:20px'>First</button>" + frame(f"{CONSENT}/", 100, 40)
    async with opened(browser, top, consent="<title>Consent</title><button>Agree</button>") as session:
        assert named((await session.view()).elements) == [("button", "First"), ("button", "Agree")]
        await hang(session)
        monkeypatch.setattr(page_frames, "_ANSWER_S", 0.5)
        monkeypatch.setattr(page_frames, "_LEFT_ALONE_S", HANGS_S)
        for _ in range(3):
            seen = await session.view()
            assert named(seen.elements) == [("button", "First"), ("iframe", "")]
            assert "Consent" not in seen.accessibility_tree


@pytest.mark.parametrize(("num_late", "seen"), [(1, ("button", "Buy")), (2, ("iframe", ""))])
async def test_a_frame_that_answers_late_is_asked_once_more(
    browser: PlaywrightBrowser, num_late: int, seen: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call, late = Calls.call, iter([True] * num_late)

    async def behind(self: Calls, what: str, awaitable: Awaitable[T], *, timeout_s: float = 0.0) -> T:
        answer = await call(self, what, awaitable, timeout_s=timeout_s)
        if timeout_s == page_frames._ANSWER_S and next(late, False):
            raise NoAnswer("its deadline has passed")
        return answer

    async with opened(browser, frame(f"{ADVERT}/", 100, 40), advert="<button>Buy</button>") as session:
        await (await session._windows.active()).frames.roots()
        monkeypatch.setattr(page_frames, "_MOMENT_S", HANGS_S / 2)
        monkeypatch.setattr(page_frames, "_LEFT_ALONE_S", HANGS_S)
        monkeypatch.setattr(Calls, "call", behind)
        assert named((await session.view()).elements) == [seen]


async def test_frames_of_a_process_that_does_not_answer_cost_one_deadline_together(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_vain: list[float] = []
    call = Calls.call

    async def counted(self: Calls, what: str, awaitable: Awaitable[T], *, timeout_s: float = 0.0) -> T:
        try:
            return await call(self, what, awaitable, timeout_s=timeout_s)
        except NoAnswer:
            if timeout_s in (0.4, 0.5):
                in_vain.append(timeout_s)
            raise

    monkeypatch.setattr(Calls, "call", counted)
    monkeypatch.setattr(endless_scripts, "_SCRIPT_S", HANGS_S)
    top = "".join(frame(f"{ADVERT}/", 100 * each, 100 * row, 50, 50) for each in range(3) for row in range(2))
    async with opened(browser, top, advert="<button>Buy</button>") as session:
        assert named((await session.view()).elements) == [("button", "Buy")] * 6
        await hang(session)
        monkeypatch.setattr(page_frames, "_ANSWER_S", 0.5)
        monkeypatch.setattr(page_frames, "_LEFT_ALONE_S", HANGS_S)
        monkeypatch.setattr(page_frames, "_MOMENT_S", 0.4)
        in_vain.clear()
        for _ in range(2):
            assert named((await session.view()).elements) == [("iframe", "")] * 6
            assert sorted(in_vain) == [0.4] * 6 + [0.5]
