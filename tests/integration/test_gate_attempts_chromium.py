"""Every way in which a page of a real Chromium can ask for something, made twice: to a public site, where it arrives, and so
proves that it works and shows the gate's password; then to a private one, which hears nothing.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest
from playwright.async_api import Page

from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.interception import Interception
from browser_workers.chromium.session import PlaywrightSession
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S
from tests.support.browsers.local_site import LocalSite, Reply, local_site
from tests.support.browsers.other_chromium import other_chromium
from tests.support.browsers.staged_network import PUBLIC_NETWORKS, StagedNetwork

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
OWN = "http://localhost:8000"
"""Pages there may use everything that pages of https may."""
PUBLIC, PRIVATE, METADATA = "203.0.113.5", "10.0.0.5", "169.254.169.254"
_SCRIPT = {"content-type": "text/javascript", "access-control-allow-origin": "*"}
_WORKER = Reply(b"onmessage = event => fetch(event.data, {mode: 'no-cors'}).catch(() => 0)", headers=_SCRIPT)
_SHARED = b"onconnect = event => { event.ports[0].onmessage = said => fetch(said.data, {mode: 'no-cors'}).catch(() => 0) }"
PAGES = {
    "/": Reply(b"<!doctype html><title>own</title>"),
    "/worker.js": _WORKER,
    "/shared.js": Reply(_SHARED, headers=_SCRIPT),
    **{
        f"/to-{kind}-{number}": Reply(
            status=f"{status} Redirect", headers={"location": f"http://redirect-{number}.{kind}.example/redirect-{number}"}
        )
        for kind in ("public", "private")
        for number, status in enumerate((301, 302, 303, 307, 308))
    },
}
ELEMENT = "(name, more) => document.body.append(Object.assign(document.createElement(name), more))"
WAYS = {
    "fetch": "url => { fetch(url, {mode: 'no-cors'}).catch(() => 0) }",
    "fetch-without-credentials": "url => { fetch(url, {mode: 'no-cors', credentials: 'omit'}).catch(() => 0) }",
    "fetch-with-preflight": "url => { fetch(url, {method: 'PUT', body: 'x'}).catch(() => 0) }",
    "fetch-that-stays": "url => { fetch(url, {mode: 'no-cors', keepalive: true, method: 'POST', body: 'x'}).catch(() => 0) }",
    "request": "url => { const it = new XMLHttpRequest(); it.open('POST', url); it.send('x'.repeat(100000)) }",
    "beacon": "url => { navigator.sendBeacon(url, 'x') }",
    "socket": "url => { new WebSocket(url.replace('http', 'ws')) }",
    "events": "url => { new EventSource(url) }",
    "image": f"url => ({ELEMENT})('img', {{src: url}})",
    "script": f"url => ({ELEMENT})('script', {{src: url}})",
    "module": "url => { import(url).catch(() => 0) }",
    "style": f"url => ({ELEMENT})('link', {{rel: 'stylesheet', href: url}})",
    "import-of-a-style": f"url => ({ELEMENT})('style', {{textContent: `@import '${{url}}'`}})",
    "screenshot-of-a-style": "url => { document.body.style.backgroundImage = `url(${url})` }",
    "font": "url => { new FontFace('x', `url(${url})`).load().catch(() => 0) }",
    "frame": f"url => ({ELEMENT})('iframe', {{src: url}})",
    "object": f"url => ({ELEMENT})('object', {{data: url}})",
    "embed": f"url => ({ELEMENT})('embed', {{src: url}})",
    "video": f"url => ({ELEMENT})('video', {{src: url, preload: 'auto'}})",
    "prefetch": f"url => ({ELEMENT})('link', {{rel: 'prefetch', href: url}})",
    "preload": f"url => ({ELEMENT})('link', {{rel: 'preload', as: 'image', href: url}})",
    "refresh": f"url => ({ELEMENT})('iframe', {{srcdoc: `<meta http-equiv='refresh' content='0; url=${{url}}'>`}})",
    # Each into a frame of its own: what another document is about to come to takes no form.
    "form": f"url => {{ ({ELEMENT})('iframe', {{name: url}}); const it = document.createElement('form');"
    " Object.assign(it, {action: url, method: 'post', target: url}); document.body.append(it); it.submit() }",
    "window": "url => { window.open(url) }",
    "worker": "url => { new Worker('/worker.js').postMessage(url) }",
    "shared-worker": "url => { new SharedWorker('/shared.js').port.postMessage(url) }",
    "service-worker": "async url => { await navigator.serviceWorker.register('/worker.js');"
    " (await navigator.serviceWorker.ready).active.postMessage(url) }",
    "blob-worker": "url => { new Worker(URL.createObjectURL(new Blob([`fetch('${url}', {mode: 'no-cors'})`]))) }",
}
UNLED = {"socket", "beacon", "fetch-that-stays"}
"""They follow no redirect: a WebSocket never, the others not where Playwright intercepts."""
REDIRECTS = tuple(range(5))
HINTS = {
    "preconnect": f"url => ({ELEMENT})('link', {{rel: 'preconnect', href: url}})",
    "dns-prefetch": f"url => ({ELEMENT})('link', {{rel: 'dns-prefetch', href: url}})",
    "prerender": f"url => ({ELEMENT})('script', {{type: 'speculationrules', textContent:"
    " JSON.stringify({prerender: [{source: 'list', urls: [url]}]})})",
    "transport": "url => { new WebTransport(url.replace('http:', 'https:')).ready.catch(() => 0) }",
    "turn": """url => {
        const servers = [{urls: `turn:${new URL(url).hostname}:80?transport=tcp`, username: 'a', credential: 'b'}]
        const connection = new RTCPeerConnection({iceServers: servers, iceTransportPolicy: 'relay'})
        connection.createDataChannel('x')
        connection.createOffer().then(offer => connection.setLocalDescription(offer))
    }""",
}
HOSTS = (
    *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"),
    *("[64:ff9b::7f00:1]", "１２７.0.0.1", "127。0。0。1", "%31%32%37.0.0.1", "LOCALHOST", "localhost.", "a.localhost"),
    *(
        "user:word@127.0.0.1",
        "10.0.0.5",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.64.0.1",
        "PRIVATE.example",
        "private.example.",
    ),
    *("metadata.example", "both-private.example", "ⓟrivate.example"),
)
FETCH = "url => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'no')"


@dataclass
class Staged:
    session: PlaywrightSession
    network: StagedNetwork
    site: LocalSite
    neighbour: LocalSite

    @property
    def page(self) -> Page:
        return self.session.context.pages[0]

    async def until(self, held: Callable[[], bool]) -> None:
        with anyio.fail_after(HANGS_S):
            while not held():
                await self.page.evaluate("0")

    async def asks(self, way: str, host: str, path: str) -> None:
        await self.page.evaluate(way, f"http://{host}/{path}")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def names() -> dict[str, tuple[tuple[str, ...], ...]]:
    places = {"public": PUBLIC, "private": PRIVATE}
    asked = (*WAYS, *HINTS, *(f"redirect-{number}" for number in REDIRECTS))
    return {
        **{f"{way}.{kind}.example": ((address,),) for way in asked for kind, address in places.items()},
        **{f"{kind}.example": ((address,),) for kind, address in places.items()},
        "metadata.example": ((METADATA,),),
        "both-private.example": ((METADATA, PRIVATE),),
        "rebinds.example": ((PUBLIC,), (PRIVATE,)),
        "own.example": ((PUBLIC, METADATA, "127.0.0.1"),),
    }


@asynccontextmanager
async def staged_session(site: LocalSite, neighbour: LocalSite, url: str, *own: str) -> AsyncIterator[Staged]:
    served = {PUBLIC: site.port} | dict.fromkeys(own, site.port)
    staged = StagedNetwork(names(), served=served, elsewhere=neighbour.port)
    config = BrowserConfig(viewport_width=400, viewport_height=300, private_hosts=PUBLIC_NETWORKS)
    async with (
        PlaywrightBrowser(config, EnvConfig(), network=staged.network) as browser,
        browser.session(Opening(url=url, quiet_s=0.0)) as session,
    ):
        session.context.set_default_timeout(1000 * HANGS_S)
        assert not (await session.open()).navigation_error
        yield Staged(session, staged, site, neighbour)


@pytest.fixture(scope="module")
async def sites() -> AsyncIterator[tuple[LocalSite, LocalSite]]:
    async with local_site(PAGES) as site, local_site(PAGES) as neighbour:
        yield site, neighbour


@pytest.fixture(scope="module")
async def staged(sites: tuple[LocalSite, LocalSite]) -> AsyncIterator[Staged]:
    async with staged_session(*sites, f"{OWN}/", "127.0.0.1", "::1") as staged:
        yield staged


@pytest.mark.parametrize("way", sorted(WAYS))
async def test_no_way_leads_to_a_private_site(staged: Staged, way: str) -> None:
    await staged.asks(WAYS[way], f"{way}.public.example", f"{way}-public")
    await staged.until(lambda: staged.site.num_asked(f"/{way}-public") > 0)
    await staged.asks(WAYS[way], f"{way}.private.example", f"{way}-private")
    await staged.until(lambda: bool(staged.session.reach.why_blocked(f"{way}.private.example")))
    assert "browser_config.private_hosts has" in staged.session.reach.why_blocked(f"{way}.private.example")
    assert staged.neighbour.asked == []


@pytest.fixture(scope="module")
async def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Staged]:
    """An episode in a browser of somebody else's that cannot reach the gate; every host is on loopback, and its own is too."""

    async def no(*_: object) -> bool:
        return False

    async with AsyncExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr("browser_workers.chromium.process.remote._reaches_gates", no)
        neighbour = await stack.enter_async_context(local_site({}))
        leading = {
            f"/to-{way}": Reply(
                status="307 Redirect",
                headers={
                    "location": f"http://to-{way}.localhost:{neighbour.port}/{way}",
                    "access-control-allow-origin": "*",
                },
            )
            for way in WAYS
        }
        site = await stack.enter_async_context(local_site(PAGES | leading))
        _, address = await stack.enter_async_context(other_chromium(tmp_path_factory.mktemp("profile")))
        config = BrowserConfig(viewport_width=400, viewport_height=300, cdp_url=address)
        browser = await stack.enter_async_context(PlaywrightBrowser(config, EnvConfig()))
        opening = Opening(url=f"http://localhost:{site.port}/", quiet_s=0.0)
        session = await stack.enter_async_context(browser.session(opening))
        session.context.set_default_timeout(1000 * HANGS_S)
        assert not (await session.open()).navigation_error
        assert isinstance(session.reach, Interception)
        yield Staged(session, StagedNetwork({}, served={}), site, neighbour)


@pytest.mark.parametrize("way", sorted(WAYS))
async def test_no_way_leads_to_a_private_site_from_a_browser_elsewhere(elsewhere: Staged, way: str) -> None:
    own = f"localhost:{elsewhere.site.port}"
    await elsewhere.asks(WAYS[way], own, f"{way}-own")
    await elsewhere.until(lambda: elsewhere.site.num_asked(f"/{way}-own") > 0)
    await elsewhere.asks(WAYS[way], f"{way}.localhost:{elsewhere.neighbour.port}", way)
    await elsewhere.until(lambda: bool(elsewhere.session.reach.why_blocked(f"{way}.localhost")))
    if way not in UNLED:
        await elsewhere.asks(WAYS[way], own, f"to-{way}")
        await elsewhere.until(lambda: bool(elsewhere.session.reach.why_blocked(f"to-{way}.localhost")))
    assert elsewhere.neighbour.asked == []


async def test_no_redirect_of_a_document_leads_there_from_a_browser_elsewhere(elsewhere: Staged) -> None:
    to = f"http://localhost:{elsewhere.site.port}/to-fetch"
    performed = await elsewhere.session.perform(Action(kind=ActionKind.NAVIGATE, text=to))
    assert "browser_config.private_hosts has" in performed.navigation_error
    assert elsewhere.neighbour.asked == []
    await elsewhere.page.goto(f"http://localhost:{elsewhere.site.port}/")


@pytest.mark.parametrize("number", REDIRECTS)
async def test_no_redirect_leads_there(staged: Staged, number: int) -> None:
    for kind in ("public", "private"):
        await staged.page.evaluate(WAYS["fetch"], f"{OWN}/to-{kind}-{number}")
        await staged.page.evaluate(WAYS["frame"], f"{OWN}/to-{kind}-{number}")
    await staged.until(lambda: staged.site.num_asked(f"/redirect-{number}") > 1)
    await staged.until(lambda: bool(staged.session.reach.why_blocked(f"redirect-{number}.private.example")))
    assert staged.neighbour.asked == []


@pytest.mark.parametrize("hint", sorted(HINTS))
async def test_nothing_that_chromium_does_beside_requests_leads_there(staged: Staged, hint: str) -> None:
    """Whether it heeds a hint is its own affair."""
    await staged.asks(HINTS[hint], f"{hint}.private.example", hint)
    await staged.asks(HINTS[hint], "127.0.0.1", hint)
    assert await staged.page.evaluate(FETCH, "http://public.example/") == "reached"
    assert staged.neighbour.asked == []
    assert {address for address, _ in staged.network.connected} <= {PUBLIC, "127.0.0.1", "::1"}
    assert all(port == 8000 for address, port in staged.network.connected if address != PUBLIC)


@pytest.mark.parametrize("host", HOSTS)
async def test_no_spelling_leads_there(staged: Staged, host: str) -> None:
    for scheme in ("http", "https"):
        assert await staged.page.evaluate(FETCH, f"{scheme}://{host}:8001/") == "no"
        await staged.page.evaluate(
            "async url => { try { new WebSocket(url) } catch {} }", f"{scheme.replace('http', 'ws')}://{host}:8001/"
        )
    performed = await staged.session.perform(Action(kind=ActionKind.NAVIGATE, text=f"http://{host}:8001/"))
    assert performed.navigation_error or performed.refused
    await staged.page.goto(f"{OWN}/")
    assert staged.neighbour.asked == []
    assert {address for address, _ in staged.network.connected} <= {PUBLIC, "127.0.0.1", "::1"}
    assert all(port == 8000 for address, port in staged.network.connected if address != PUBLIC)


async def test_a_site_whose_name_leads_inwards_too_is_reached_outside_alone(sites: tuple[LocalSite, LocalSite]) -> None:
    """Its first answer is its own, and is nobody's word that a cloud's credentials may be read on its origin."""
    async with staged_session(*sites, "http://own.example/") as staged:
        for _ in range(3):
            assert await staged.page.evaluate("fetch('/').then(answer => answer.text())") == PAGES["/"].body.decode()
        assert {address for address, _ in staged.network.connected} == {PUBLIC}
        assert staged.network.looked_up == ["own.example"]


async def test_a_name_that_moves_is_still_where_it_was(sites: tuple[LocalSite, LocalSite]) -> None:
    async with staged_session(*sites, "http://rebinds.example/") as staged:
        for port in (80, 8080, 8081):
            assert await staged.page.evaluate(FETCH, f"http://rebinds.example:{port}/") == "reached"
        assert {address for address, _ in staged.network.connected} == {PUBLIC}
        assert staged.network.looked_up == ["rebinds.example"]
    assert sites[1].asked == []
