"""What pages of a real Chromium reach, and what gets past the gate: nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import pytest
from playwright.async_api import Page

from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.network.gate import Gate
from browser_workers.site import Documents
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S
from tests.support.browsers.local_site import LocalSite, Reply, local_site

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
PAGES = {
    "/": Reply(b"<!doctype html><title>site</title><img src='/picture.png'>"),
    "/to-file": Reply(status="302 Found", headers={"location": "file:///etc/passwd"}),
}
SECURE = "http://played.localhost"
"""Pages of it may use everything that pages of https may."""
PLAYED = Documents(SECURE, {"/": b"<!doctype html><title>played</title>"})
SOCKET = "url => new Promise(done => { const it = new WebSocket(url); it.onmessage = it.onerror = e => done(e.data ?? 'no') })"
FETCH = "url => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'no')"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def site() -> AsyncIterator[LocalSite]:
    async with local_site(PAGES) as site:
        yield site


@pytest.fixture(scope="module")
async def neighbour() -> AsyncIterator[LocalSite]:
    """Another service of this machine."""
    async with local_site(PAGES) as site:
        yield site


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with PlaywrightBrowser(config(), EnvConfig()) as browser:
        yield browser


def config(**changes: object) -> BrowserConfig:
    return BrowserConfig(viewport_width=400, viewport_height=300, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def opened(browser: PlaywrightBrowser, opening: Opening) -> AsyncIterator[tuple[PlaywrightSession, Page]]:
    async with browser.session(opening) as session:
        session.context.set_default_timeout(1000 * HANGS_S)
        assert not (await session.open()).navigation_error
        yield session, session.context.pages[0]


def own(site: LocalSite) -> Opening:
    return Opening(url=f"{site.origin}/", quiet_s=0.0)


async def test_a_page_reaches_its_own_site_on_this_machine_and_nothing_else_here(
    browser: PlaywrightBrowser, site: LocalSite, neighbour: LocalSite
) -> None:
    neighbour.asked.clear()
    async with opened(browser, own(site)) as (session, page):
        assert await page.title() == "site"
        assert site.num_asked("/picture.png") == 1
        assert await page.evaluate(SOCKET, f"ws://127.0.0.1:{site.port}/socket") == "hello"
        for name in ("127.0.0.1", "localhost", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"):
            assert await page.evaluate(FETCH, f"http://{name}:{neighbour.port}/") == "no"
            assert await page.evaluate(SOCKET, f"ws://{name}:{neighbour.port}/socket") == "no"
        frame = "url => new Promise(done => { const it = document.createElement('iframe');"
        await page.evaluate(f"{frame} it.onload = () => done(0); it.src = url; document.body.append(it) }})", neighbour.origin)
        performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{neighbour.origin}/"))
        assert performed.navigation_error
        assert "a loopback address" in session.reach.why_blocked("127.0.0.1")
        performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{site.origin}/"))
        assert not performed.navigation_error
        assert await page.title() == "site"
    assert neighbour.asked == []


async def test_episodes_side_by_side_have_rules_of_their_own(
    browser: PlaywrightBrowser, site: LocalSite, neighbour: LocalSite
) -> None:
    async with opened(browser, own(site)) as (_, one), opened(browser, own(neighbour)) as (_, another):
        for page, here, there in ((one, site, neighbour), (another, neighbour, site)):
            assert await page.evaluate(FETCH, f"{here.origin}/") == "reached"
            assert await page.evaluate(FETCH, f"{there.origin}/") == "no"


async def test_lists_of_hosts_hold_for_pages(site: LocalSite, neighbour: LocalSite) -> None:
    lists = config(private_hosts=("127.0.0.0/8",), allowed_hosts=("localhost",), denied_hosts=("denied.localhost",))
    async with PlaywrightBrowser(lists, EnvConfig()) as browser, opened(browser, own(site)) as (session, page):
        for host, expected in (("localhost", "reached"), ("denied.localhost", "no"), ("127.0.0.2", "no")):
            assert await page.evaluate(FETCH, f"http://{host}:{neighbour.port}/") == expected
        assert "denied_hosts" in session.reach.why_blocked("denied.localhost")
        assert "allowed_hosts" in session.reach.why_blocked("127.0.0.2")


async def test_names_are_looked_up_by_the_gate_alone(
    browser: PlaywrightBrowser, site: LocalSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("browser_workers.network.gate._CONNECT_S", HANGS_S)
    async with opened(browser, own(site)) as (session, page):
        assert await page.evaluate(FETCH, "http://no.such.host.invalid/") == "no"
        assert session.reach.why_blocked("no.such.host.invalid") == "no address is known for no.such.host.invalid"


async def test_a_site_that_asks_for_a_password_does_not_get_the_gates(browser: PlaywrightBrowser, site: LocalSite) -> None:
    async with opened(browser, own(site)) as (session, page):
        site.asked.clear()
        assert await page.evaluate("fetch('/auth').then(answer => answer.status)") == 401
        assert not (await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{site.origin}/auth"))).refused
        asked = [each.headers for each in site.asked if each.path == "/auth"]
        assert len(asked) >= 2
        assert not [headers for headers in asked if "authorization" in headers or "proxy-authorization" in headers]


GATHER = """async url => {
    const key = {username: 'a', credential: 'b'}
    const servers = [{urls: 'stun:' + url}, {urls: 'turn:' + url, ...key}, {urls: `turn:${url}?transport=tcp`, ...key}]
    const connection = new RTCPeerConnection({iceServers: servers})
    connection.createDataChannel('x')
    const candidates = []
    const over = new Promise(done => { connection.onicecandidate = e => e.candidate ? candidates.push(e.candidate) : done() })
    await connection.setLocalDescription(await connection.createOffer())
    await over
    return candidates.length
}"""


async def test_no_datagram_leaves(browser: PlaywrightBrowser) -> None:
    async with await anyio.create_udp_socket(local_host="127.0.0.1") as heard:
        port = heard.extra(anyio.abc.SocketAttribute.local_port)
        async with opened(browser, Opening(url=f"{SECURE}/", site=PLAYED, quiet_s=0.0)) as (_, page):
            assert await page.evaluate(GATHER, f"127.0.0.1:{port}") == 0
            transport = "url => new WebTransport(url).ready.then(() => 'reached', () => 'no')"
            assert await page.evaluate(transport, f"https://127.0.0.1:{port}/") == "no"
        # Had one been sent, it would be first in line.
        async with await anyio.create_udp_socket(local_host="127.0.0.1") as own_socket:
            await own_socket.sendto(b"last", "127.0.0.1", port)
        assert (await heard.receive())[0] == b"last"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "view-source:http://example.org",
        "chrome://version",
        "devtools://devtools/bundled/inspector.html",
        "ftp://127.0.0.1/",
        "data:text/html,<title>inside</title>",
        "chrome-extension://abcdefghijklmnopabcdefghijklmnop/x.html",
    ],
)
async def test_pages_cannot_get_out_of_the_web(browser: PlaywrightBrowser, site: LocalSite, url: str) -> None:
    async with opened(browser, own(site)) as (session, page):
        attempts = (
            "url => { location = url }",
            "url => { const it = document.createElement('a'); it.href = url; document.body.append(it); it.click() }",
            "url => { const it = document.createElement('form'); it.action = url; document.body.append(it); it.submit() }",
            "url => { window.open(url) }",
        )
        for attempt in attempts:
            await page.evaluate(attempt, url)
            await session.view()
            for each in session.context.pages:
                where = await each.evaluate("location.href")
                assert where.startswith((site.origin, "about:", "chrome-error:")), f"{attempt} led to {where}"
            await page.goto(f"{site.origin}/")
        if not url.startswith("data:"):
            frame = "url => { const it = document.createElement('iframe'); it.src = url; document.body.append(it) }"
            await page.evaluate(frame, url)
            await session.view()
            assert all(each.url.startswith((site.origin, "about:", "chrome-error:")) or not each.url for each in page.frames)
            assert await page.evaluate("url => fetch(url).then(() => 'reached', () => 'no')", url) == "no"


async def test_a_redirect_cannot_either(browser: PlaywrightBrowser, site: LocalSite) -> None:
    async with opened(browser, own(site)) as (session, page):
        performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{site.origin}/to-file"))
        assert performed.navigation_error
        assert await page.evaluate("location.protocol") == "chrome-error:"


async def test_nothing_stays_connected_when_the_episode_ends(browser: PlaywrightBrowser, site: LocalSite) -> None:
    async with opened(browser, own(site)) as (session, page):
        assert await page.evaluate(SOCKET, f"ws://127.0.0.1:{site.port}/socket") == "hello"
        gate = session.reach
        assert isinstance(gate, Gate)
        assert gate.num_open >= 2
    with anyio.fail_after(HANGS_S):
        await gate.wait_closed()
    assert gate.num_open == 0
    with pytest.raises(OSError, match="failed"):
        await anyio.connect_tcp("127.0.0.1", gate.port)
