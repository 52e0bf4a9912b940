"""Pages that mean harm end as observations or as named failures, within their deadlines, and the next episode is normal."""

import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import TypeVar

import anyio
import anyio.abc
import pytest

from browser_workers.browser import Opening, Performed, View
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.site import Site, SiteRequest, SiteResponse
from schemas.config import EnvConfig
from schemas.errors import PageFailed
from schemas.messages import Action, ActionKind
from tests.browser_pages import ORIGIN, click, opening_of, page, press, small, title

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(60)]

OPERATION_S = 1.5
T = TypeVar("T")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with PlaywrightBrowser(small(), EnvConfig(operation_timeout=OPERATION_S)) as browser:
        yield browser


@pytest.fixture(autouse=True)
async def normal_afterwards(browser: PlaywrightBrowser) -> AsyncIterator[None]:
    """The next episode in the same browser."""
    launches = browser.num_launches
    yield
    body = "<button style='position:absolute;inset:0' onclick='document.title = `clicked`'>go</button>"
    with anyio.fail_after(5):
        async with browser.session(opening_of(body)) as session:
            await session.open()
            performed = await session.perform(click())
            assert performed.refused == performed.notice == performed.navigation_error == ""
            view = await session.view()
    assert (view.state.title, view.state.tabs, view.blank) == ("clicked", (), False)
    assert browser.num_launches in (launches, max(launches, 1))


async def within(seconds: float, awaitable: Awaitable[T]) -> T:
    with anyio.fail_after(seconds):
        return await awaitable


def on_click(script: str) -> bytes:
    return page("").replace(b"<body", f'<body onclick="{script}"'.encode()) + b"<p style='height:90vh'>text"


async def act_and_view(session: PlaywrightSession) -> None:
    await session.perform(click())
    await session.view()


async def acted(browser: PlaywrightBrowser, opening: Opening, seconds: float) -> tuple[Performed, View]:
    """What a click on the page comes to, and what is seen then, both within their time."""
    async with browser.session(opening) as session:
        await within(seconds, session.open())
        performed = await within(seconds, session.perform(click()))
        return performed, await within(seconds, session.view())


@pytest.mark.parametrize("loop", ["for (;;) alert(1)", "setInterval(() => confirm('?'), 0)", "while (!confirm('?')) {}"])
async def test_endless_dialogs_are_ended(browser: PlaywrightBrowser, loop: str) -> None:
    async with browser.session(opening_of(on_click(loop))) as session:
        await within(3, session.open())
        performed = await within(4, session.perform(click()))
        later = await within(4, session.perform(Action(kind=ActionKind.WAIT, seconds=0.3)))
        assert "after 16 dialogs the page can show no more" in performed.notice + later.notice
        view = await within(3, session.view())
        assert (view.state.title, view.blank) == ("page", False)
        last = await within(3, session.perform(Action(kind=ActionKind.WAIT, seconds=0.2)))
        assert last.notice == ""


async def test_dialogs_without_end_while_a_page_is_opened_are_a_named_failure(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of("<script>for (;;) alert(1)</script>text")) as session:
        await within(6 * OPERATION_S, session.open())
        with pytest.raises(PageFailed, match="did not return within"):
            await within(10 * OPERATION_S, session.view())


@pytest.mark.parametrize("loop", ["for (;;) window.open('/')", "setInterval(() => window.open('/'), 1)"])
async def test_a_storm_of_windows_is_ended(browser: PlaywrightBrowser, loop: str) -> None:
    async with browser.session(opening_of(on_click(loop))) as session:
        await within(3, session.open())
        performed = await within(8, session.perform(click()))
        later = await within(8, session.perform(Action(kind=ActionKind.WAIT, seconds=0.5)))
        assert (performed.notice + later.notice).count("opened more than 8 windows, which is the limit") == 1
        view = await within(4, session.view())
        assert len(view.state.tabs) == 8
        opened = session.context.pages
        await within(8, session.perform(Action(kind=ActionKind.WAIT, seconds=0.3)))
        assert len(session.context.pages) <= max(8, len(opened))


async def test_a_page_that_closes_itself_is_a_named_failure(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of(on_click("window.close()"))) as session:
        await session.open()
        with pytest.raises(PageFailed, match="the page closed itself"):
            await within(4, session.perform(click()))


@pytest.mark.parametrize("trap", ["return false", "for (;;) {}"])
async def test_a_page_that_will_not_be_left(browser: PlaywrightBrowser, trap: str) -> None:
    body = page(f"<p style='height:90vh'>text<script>window.onbeforeunload = () => {{ {trap} }}</script>")
    async with browser.session(opening_of(body, second=b"<title>second</title>")) as session:
        await session.open()
        await session.perform(click())
        began = time.monotonic()
        with suppress(PageFailed):
            await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{ORIGIN}/second"))
            assert await title(session) == "second"
        assert time.monotonic() - began < 4 * OPERATION_S


async def test_an_endless_script_is_ended(browser: PlaywrightBrowser) -> None:
    performed, view = await acted(browser, opening_of(on_click("for (;;) {}")), 4)
    assert performed.notice == "the page's script did not return within 0.75 s and was ended"
    assert view.state.title == "page"


async def test_scripts_that_never_end_again_and_again_are_a_named_failure(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of(on_click("setInterval(() => { for (;;) {} }, 0)"))) as session:
        await session.open()
        began = time.monotonic()
        with pytest.raises(PageFailed, match=r"did not return within|no picture could be taken"):
            await act_and_view(session)
        assert time.monotonic() - began < 10 * OPERATION_S


async def test_an_endless_script_while_a_page_is_opened_is_a_named_failure(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of("<script>for (;;) {}</script>")) as session:
        await within(6 * OPERATION_S, session.open())
        with pytest.raises(PageFailed, match="did not return within"):
            await within(10 * OPERATION_S, session.view())


async def test_a_bomb_of_memory_is_a_named_failure(browser: PlaywrightBrowser) -> None:
    bomb = "const all = []; for (;;) all.push(new Array(1000).fill(1))"
    began = time.monotonic()
    async with browser.session(opening_of(on_click(bomb))) as session:
        await session.open()
        with suppress(PageFailed):
            performed = await session.perform(click())
            assert "was ended" in performed.notice
    assert time.monotonic() - began < 4 * OPERATION_S


@pytest.mark.parametrize(
    "body",
    [
        "<style>p { animation: turn 1s infinite } @keyframes turn { to { transform: rotate(1turn) } }</style><p>text",
        "<p>text<script>const go = () => { document.body.style.color = `rgb(0,0,${Date.now() % 255})`; "
        "requestAnimationFrame(go) }; go()</script>",
        "<p>text<script>setInterval(() => history.pushState(null, '', `/${Math.random()}`), 1)</script>",
        "<p>text<script>setInterval(() => { document.write('x'); document.close() }, 1)</script>",
        "<p>text<script>setTimeout(() => { location = '/?' + Math.random() }, 50)</script>",
        "<p>text<iframe src='/'></iframe>",
        "<p>text<script>document.body.append(...Array.from({length: 200000}, () => document.createElement('i')))</script>",
    ],
    ids=["animation", "frames", "states", "writes", "navigates", "nests", "nodes"],
)
async def test_restless_pages_are_observed(browser: PlaywrightBrowser, body: str) -> None:
    performed, view = await acted(browser, opening_of(body), 8 * OPERATION_S)
    assert performed.refused == performed.navigation_error == ""
    assert view.state.url.startswith(ORIGIN)


class Trap(Site):
    """Redirects to itself for ever at `/turns`; the rest of a page never comes at `/hangs`."""

    origin = ORIGIN

    def respond(self, request: SiteRequest) -> SiteResponse:
        if request.path == "/turns":
            return SiteResponse(b"<script>location = '/turns?' + Math.random()</script>", after_s=0.005)
        return SiteResponse(page("text <img src=/hangs>"), after_s=30.0 if request.path == "/hangs" else 0.0)


async def test_redirects_without_end_by_script_are_observed(browser: PlaywrightBrowser) -> None:
    async with browser.session(Opening(url=f"{ORIGIN}/turns", site=Trap(), quiet_s=0.03)) as session:
        began = time.monotonic()
        with suppress(PageFailed):
            await session.open()
            assert (await session.view()).state.url.startswith(ORIGIN)
        assert time.monotonic() - began < 14 * OPERATION_S


async def _never(stream: anyio.abc.SocketStream) -> None:
    """Redirects to itself at `/turns`; begins a page and never ends it anywhere else."""
    async with stream:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                request = await stream.receive()
                if request.startswith(b"GET /turns"):
                    await stream.send(b"HTTP/1.1 302 Found\r\nLocation: /turns\r\nContent-Length: 0\r\n\r\n")
                else:
                    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 999999\r\n\r\n"
                    await stream.send(head + b"<title>begun</title><p>text")


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, _never)
        yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


async def test_redirects_without_end_are_said(browser: PlaywrightBrowser, address: str) -> None:
    async with browser.session(Opening(url=f"{address}/turns", quiet_s=0.03)) as session:
        performed = await within(10, session.open())
        assert "ERR_TOO_MANY_REDIRECTS" in performed.navigation_error


async def test_a_page_that_never_ends_is_observed(browser: PlaywrightBrowser, address: str) -> None:
    async with browser.session(opening_of("first")) as session:
        await session.open()
        await within(6 * OPERATION_S, session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{address}/begun")))
        assert (await within(10, session.view())).state.title == "begun"


async def test_a_renderer_that_dies_is_a_named_failure(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of("text")) as session:
        await session.open()
        tab_session = await session.context.new_cdp_session(session.context.pages[0])
        async with anyio.create_task_group() as group:

            async def crash() -> None:
                with suppress(Exception):
                    await tab_session.send("Page.crash")

            group.start_soon(crash)
            with anyio.fail_after(2):
                assert "crashed" in str(await session.wait_failed())
            group.cancel_scope.cancel()
        with pytest.raises(PageFailed, match="crashed"):
            await session.perform(press("a"))
