"""When an action is over: by what page and network do, never by the clock alone; always within a cap."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import anyio
import pytest

from browser_workers.browser import Opening
from browser_workers.chromium import effect_observer, endless_scripts, evaluation, navigation, tab
from browser_workers.chromium import page_stability as rest
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.calls import Calls
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.site import SiteRequest, SiteResponse
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S
from tests.support.browsers.patience import wait_for_pages

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://pages.test"
CLICK = Action(kind=ActionKind.CLICK, point=(500, 500))
LONG_S = 2 * HANGS_S
"""A quiet period that no test can afford to wait for."""


_PATIENT = evaluation._SCRIPT.replace("LATE_FRAME_MS = 100", "LATE_FRAME_MS = 600000")
assert evaluation._SCRIPT != _PATIENT


class Deferred:
    """A link's page has its script a while after itself."""

    origin = ORIGIN

    def respond(self, request: SiteRequest) -> SiteResponse:
        if request.path == "/late.js":
            return SiteResponse(b"told = 1", content_type="text/javascript", after_s=0.5)
        link = "<a href='/next' style='position:fixed;inset:0'>next</a>" if request.path == "/" else ""
        return SiteResponse(f"<!doctype html>{link}<script defer src='/late.js'></script>text".encode())


class Slow:
    """Serves one page at `/`, and `late` after a while anywhere else, after a long one at `/never`."""

    origin = ORIGIN

    def __init__(self, body: str) -> None:
        self._document = f"<!doctype html><title>t</title><body style='height:100vh;margin:0'>{body}".encode()

    def respond(self, request: SiteRequest) -> SiteResponse:
        if request.path == "/":
            return SiteResponse(self._document)
        after_s = 30.0 if request.path == "/never" else 0.3
        return SiteResponse(b"<!doctype html><title>late</title>late", after_s=after_s)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    config = BrowserConfig(viewport_width=400, viewport_height=300)
    async with PlaywrightBrowser(config, EnvConfig(operation_timeout=4 * HANGS_S)) as browser:
        yield browser


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that a page does is waited for: on a busy machine a frame takes what twenty do."""
    monkeypatch.setattr(evaluation, "_SCRIPT", _PATIENT)
    monkeypatch.setattr(effect_observer, "_PAGE_CAP_MS", 1000 * HANGS_S)
    wait_for_pages(monkeypatch)


@asynccontextmanager
async def on(browser: PlaywrightBrowser, body: str, quiet_s: float = 0.05) -> AsyncIterator[PlaywrightSession]:
    opening = Opening(url=f"{ORIGIN}/", site=Slow(body), quiet_s=quiet_s)
    async with browser.session(opening) as session:
        await session.open()
        yield session


def clicked(script: str) -> str:
    return f"<script>onclick = () => {{ {script} }}</script>"


async def title_after_click(session: PlaywrightSession) -> str:
    await session.perform(CLICK)
    return (await session.state()).title


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "script",
    [
        "fetch('/x').then(() => { document.title = 'done' })",
        "fetch('/x').then(() => fetch('/y')).then(() => { document.title = 'done' })",
        "const i = new Image(); i.onerror = () => { document.title = 'done' }; i.src = '/x'",
        "requestAnimationFrame(() => fetch('/x').then(() => { document.title = 'done' }))",
        "const f = document.createElement('iframe'); f.onload = () => { document.title = 'done' }; f.src = '/x';"
        "document.body.append(f)",
    ],
)
async def test_what_a_click_loads_is_waited_for(browser: PlaywrightBrowser, script: str) -> None:
    async with on(browser, clicked(script)) as session:
        assert await title_after_click(session) == "done"


async def test_a_document_that_does_not_come_is_given_up_though_the_pages_address_changes_meanwhile(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(navigation, "LOAD_CAP_S", 2.0)
    leave = "location = '/never'; setTimeout(() => history.replaceState(null, '', '/?here'), 50)"
    async with on(browser, clicked(leave)) as session:
        performed = await session.perform(CLICK)
        assert "did not answer within 2 s" in performed.navigation_error
        assert performed.num_documents == 0


@pytest.mark.usefixtures("patient")
async def test_a_page_that_was_not_waited_for_long_enough_is_asked_once_it_has_come_to_rest(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its scripts were to say is not missing from the checks of a task."""
    async with browser.session(Opening(url=f"{ORIGIN}/", site=Deferred(), quiet_s=0.05)) as session:
        await session.open()
        with monkeypatch.context() as impatient:
            impatient.setattr(tab, "_SETTLE_CAP_S", 0.001)
            await session.perform(CLICK)
        assert await session.page_values(["[location.pathname, told]"]) == ("/next,1",)


@pytest.mark.usefixtures("patient")
async def test_a_document_that_a_click_leads_to_is_waited_for(browser: PlaywrightBrowser) -> None:
    async with on(browser, clicked("location = '/next'")) as session:
        assert await title_after_click(session) == "late"


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "script",
    [
        "b.style.width = '300px'",
        "b.animate([{ width: '100px' }, { width: '300px' }], { duration: 400, fill: 'forwards' })",
        "let w = 100; const grow = () => { b.style.transition = 'none'; b.style.width = (w += 10) + 'px';"
        "if (w < 300) requestAnimationFrame(grow) }; grow()",
    ],
)
async def test_what_moves_for_a_while_is_waited_for(browser: PlaywrightBrowser, script: str) -> None:
    box = "<div id=b style='width:100px;height:9px;transition:width 400ms'></div>"
    async with on(browser, box + clicked(script)) as session:
        await session.perform(CLICK)
        assert await session.page_values(["b.getBoundingClientRect().width"]) == ("300",)


@pytest.mark.parametrize(
    "body",
    [
        "<style>@keyframes k{to{opacity:0}}</style><p style='animation:k 1s infinite'>x",
        "<style>@keyframes k{to{opacity:0}}</style><p style='animation:k 100s'>x",
        "<p id=p>x<script>const go = () => { p.textContent += 1; requestAnimationFrame(go) }; go()</script>",
        "<p id=p>x<script>setInterval(() => { p.title += 1 }, 5)</script>",
    ],
)
async def test_what_moves_for_ever_is_not_waited_for(browser: PlaywrightBrowser, body: str) -> None:
    async with on(browser, body) as session:
        with anyio.fail_after(HANGS_S):
            await session.perform(CLICK)
            await session.view()


async def test_a_page_that_polls_without_end_is_capped(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "_TRAFFIC_CAP_S", 0.7)
    polling = "<script>const poll = () => fetch('/x').then(poll); poll(); poll()</script>"
    async with on(browser, polling) as session:
        with anyio.fail_after(HANGS_S):
            await session.perform(CLICK)
            await session.view()


@pytest.mark.parametrize(
    "body",
    ["text<img src=/never>", "text<img src=/never><script>setTimeout(() => location.reload(), 40)</script>"],
    ids=["is never complete", "replaces its document"],
)
async def test_what_was_waited_for_in_vain_is_not_waited_for_again(
    browser: PlaywrightBrowser, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tab, "LOAD_CAP_S", 1.5)
    monkeypatch.setattr(rest, "_MANY_DOCUMENTS", 1)
    wait = rest.PageStability.settle
    async with on(browser, body) as session:
        with anyio.fail_after(HANGS_S):
            await session.perform(CLICK)
            # Whoever waits as long as may be from now on waits longer than the test.
            monkeypatch.setattr(rest.PageStability, "settle", lambda stability, cap_s: wait(stability, 10 * HANGS_S))
            await session.perform(CLICK)


async def test_a_click_that_loads_nothing_has_no_quiet_period(browser: PlaywrightBrowser) -> None:
    async with on(browser, clicked("document.title = 'clicked'")) as session:
        await session.view()
        # The quiet period of the first document is over; from now on it would outlast the test.
        for tab in session._windows.tabs:
            tab.opening = Opening(url=ORIGIN, quiet_s=LONG_S)
        with anyio.fail_after(HANGS_S):
            assert await title_after_click(session) == "clicked"
            await session.view()


@pytest.fixture
def made(patient: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that pages were asked for, in order, but for those about what has become old or takes long."""
    monkeypatch.setattr(rest, "_FRESH_S", HANGS_S)
    monkeypatch.setattr(endless_scripts, "_SCRIPT_S", 2 * HANGS_S)
    names: list[str] = []
    call = Calls.call

    async def noted(self: Calls, what: str, awaitable: Awaitable[object], *, timeout_s: float = 0.0) -> object:
        names.append(what)
        return await call(self, what, awaitable, timeout_s=timeout_s)

    monkeypatch.setattr(Calls, "call", noted)
    return names


async def step(session: PlaywrightSession) -> str:
    """One step as an episode takes it; returns the title that is observed."""
    await session.perform(CLICK)
    await session.state()
    return (await session.view()).state.title


async def test_a_step_is_four_round_trips(browser: PlaywrightBrowser, made: list[str]) -> None:
    async with on(browser, clicked("document.title = 'x'")) as session:
        await session.view()
        made.clear()
        assert await step(session) == "x"
    assert made == ["Runtime.evaluate", "the click", "Runtime.evaluate", "Page.captureScreenshot"]


async def test_a_step_to_another_document_is_six_round_trips(browser: PlaywrightBrowser, made: list[str]) -> None:
    async with on(browser, clicked("location = '/next'")) as session:
        await session.view()
        made.clear()
        assert await step(session) == "late"
    # One look fewer where the document is there before it was looked for.
    assert len(made) <= 6
    assert made.count("Page.captureScreenshot") == 1
    assert made.count("Page.createIsolatedWorld") == 1


async def test_a_page_in_the_background_does_not_hold_its_opener_up(browser: PlaywrightBrowser) -> None:
    """No frame is painted for a hidden page: its look must not wait for one."""
    async with on(browser, clicked("open('/next')")) as session:
        await session.perform(CLICK)
        with anyio.fail_after(HANGS_S):
            while len(session._windows.tabs) < 2:  # on a busy machine it may open later than the step waits for it
                await session._windows.opened(1)
            opener, _ = session._windows.tabs
            opener.begin_action()
            await opener.settle()
        assert (await opener.state()).title == "t"


@pytest.mark.usefixtures("patient")
async def test_a_scroll_is_over_when_the_page_shows_it(browser: PlaywrightBrowser) -> None:
    lines = "<div style='height:5000px'></div>"
    seen = list[str]()
    async with on(browser, lines, quiet_s=0.0) as session:
        for _ in range(6):
            await session.perform(Action(kind=ActionKind.SCROLL, direction="down"))
            seen += await session.page_values(["Math.round(scrollY)"])
    assert seen == [str(300 * (index + 1)) for index in range(6)]
