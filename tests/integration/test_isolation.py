"""Two episodes side by side on one real site: whatever one of them leaves there, the other does not find.

Each attempt is made twice: in another tab of the same episode, where it must succeed, then in the other episode.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from playwright.async_api import Page

from browser_workers.browser import Opening, Performed
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.session import PlaywrightSession
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from tests.deadlines import HANGS_S
from tests.support.browsers.local_site import LocalSite, Reply, local_site

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

_WORKER = b"""self.onfetch = event => {
    if (event.request.url.endsWith('/by-worker')) event.respondWith(new Response('worker')) };
self.oninstall = () => self.skipWaiting(); self.onactivate = event => event.waitUntil(self.clients.claim())"""
_SHARED = b"let count = 0; self.onconnect = event => event.ports[0].postMessage(++count)"
_SCRIPT = {"content-type": "text/javascript"}
PAGES = {
    "/": Reply(b"<!doctype html><title>site</title>"),
    "/by-worker": Reply(b"server"),
    "/cached": Reply(b"x", headers={"cache-control": "max-age=3600"}),
    "/auth": Reply(b"<!doctype html><title>let in</title>"),
    "/worker.js": Reply(_WORKER, headers=_SCRIPT),
    "/shared.js": Reply(_SHARED, headers=_SCRIPT),
}


@dataclass(frozen=True)
class Attempt:
    plant: str
    look: str
    """True where what was planted is there."""


ATTEMPTS = {
    "cookies": Attempt("document.cookie = 'a=1'", "document.cookie.includes('a=1')"),
    "local storage": Attempt("localStorage.a = 1", "localStorage.a === '1'"),
    "IndexedDB": Attempt(
        "new Promise(done => { const request = indexedDB.open('a'); request.onsuccess = () => done(request.result.close()) })",
        "indexedDB.databases().then(all => all.some(each => each.name === 'a'))",
    ),
    "Cache API": Attempt("caches.open('a').then(cache => cache.add('/by-worker'))", "caches.has('a')"),
    "files": Attempt(
        "navigator.storage.getDirectory().then(folder => folder.getFileHandle('a', {create: true})).then(() => 0)",
        "navigator.storage.getDirectory().then(folder => folder.getFileHandle('a')).then(() => true, () => false)",
    ),
    "locks": Attempt(
        "new Promise(done => { navigator.locks.request('a', () => { done(0); return new Promise(() => 0) }) })",
        "navigator.locks.request('a', {ifAvailable: true}, lock => lock === null)",
    ),
    "shared workers": Attempt(
        "new Promise(done => { new SharedWorker('/shared.js').port.onmessage = () => done(0) })",
        "new Promise(done => { new SharedWorker('/shared.js').port.onmessage = event => done(event.data > 1) })",
    ),
    "service workers": Attempt(
        "navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready).then(() => 0)",
        "fetch('/by-worker').then(answer => answer.text()).then(text => text === 'worker')",
    ),
    "named windows": Attempt(
        "new Promise(done => { window.open('/', 'a').onload = () => done(0) })",
        "(() => { const found = window.open('', 'a'), there = found.location.href !== 'about:blank';"
        " if (!there) found.close(); return there })()",
    ),
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def site() -> AsyncIterator[LocalSite]:
    async with local_site(PAGES) as site:
        yield site


@pytest.fixture(scope="module")
async def pair(site: LocalSite) -> AsyncIterator[tuple[PlaywrightSession, PlaywrightSession]]:
    opening = Opening(url=f"{site.origin}/", quiet_s=0.0)
    async with (
        PlaywrightBrowser(BrowserConfig(viewport_width=400, viewport_height=300), EnvConfig()) as browser,
        browser.session(opening) as one,
        browser.session(opening) as another,
    ):
        for session in (one, another):
            session.context.set_default_timeout(1000 * HANGS_S)
            assert await session.open() == Performed(num_documents=1)
            assert first_page(session).url == opening.url
        yield one, another


Pair = tuple[PlaywrightSession, PlaywrightSession]


def first_page(session: PlaywrightSession) -> Page:
    return session.context.pages[0]


@asynccontextmanager
async def second_page(session: PlaywrightSession, site: LocalSite) -> AsyncIterator[Page]:
    page = await session.context.new_page()
    await page.goto(f"{site.origin}/")
    yield page
    await page.close()


@pytest.mark.parametrize("name", sorted(ATTEMPTS))
async def test_nothing_is_shared(pair: Pair, site: LocalSite, name: str) -> None:
    one, another = pair
    attempt = ATTEMPTS[name]
    await first_page(one).evaluate(attempt.plant)
    if name == "named windows":
        # Windows know each other by name only where one has opened the other.
        assert await first_page(one).evaluate(attempt.look) is True
    else:
        async with second_page(one, site) as beside:
            assert await beside.evaluate(attempt.look) is True, "the attempt itself does not work"
    assert await first_page(another).evaluate(attempt.look) is False
    await first_page(another).reload()
    assert await first_page(another).evaluate(attempt.look) is False


async def test_session_storage_is_not_shared(pair: Pair) -> None:
    one, another = pair
    await first_page(one).evaluate("sessionStorage.a = 1")
    await first_page(one).reload()
    assert await first_page(one).evaluate("sessionStorage.a") == "1"
    assert await first_page(another).evaluate("sessionStorage.a ?? null") is None


async def test_broadcasts_stay_in_their_episode(pair: Pair, site: LocalSite) -> None:
    one, another = pair
    listen = "void (window.heard = new Promise(done => { new BroadcastChannel('a').onmessage = event => done(event.data) }))"
    say = "name => void (window.channel = new BroadcastChannel('a')).postMessage(name)"
    async with second_page(one, site) as beside, second_page(another, site) as neighbour:
        await beside.evaluate(listen)
        await first_page(another).evaluate(listen)
        await first_page(one).evaluate(say, "from one")
        assert await beside.evaluate("window.heard") == "from one"
        await neighbour.evaluate(say, "from another")
        assert await first_page(another).evaluate("window.heard") == "from another"


async def test_the_http_cache_is_not_shared(pair: Pair, site: LocalSite) -> None:
    one, another = pair
    fetch = "fetch('/cached').then(answer => answer.text())"
    async with second_page(one, site) as beside:
        for page in (first_page(one), first_page(one), beside):
            assert await page.evaluate(fetch) == "x"
    assert site.num_asked("/cached") == 1
    assert await first_page(another).evaluate(fetch) == "x"
    assert site.num_asked("/cached") == 2


async def test_passwords_are_not_shared(pair: Pair, site: LocalSite) -> None:
    one, another = pair
    async with second_page(one, site) as beside, second_page(another, site) as stranger:
        await beside.goto(f"http://me:secret@127.0.0.1:{site.port}/auth")
        await beside.goto(f"{site.origin}/auth")
        assert await beside.title() == "let in"
        answer = await stranger.goto(f"{site.origin}/auth")
        assert answer is not None
        assert answer.status == 401


async def test_permissions_are_not_shared(pair: Pair, site: LocalSite) -> None:
    one, another = pair
    await one.context.grant_permissions(["geolocation"], origin=site.origin)
    query = "navigator.permissions.query({name: 'geolocation'}).then(found => found.state)"
    assert await first_page(one).evaluate(query) == "granted"
    assert await first_page(another).evaluate(query) != "granted"


async def test_nobody_has_an_opener_in_another_episode(pair: Pair) -> None:
    for session in pair:
        assert await first_page(session).evaluate("window.opener") is None
