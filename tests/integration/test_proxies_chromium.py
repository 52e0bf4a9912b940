"""Pages of a real Chromium behind proxies of each kind, and what pages are told about whoever looks at them."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from browser_workers.browser import Opening, Performed
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.session import PlaywrightSession
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from tests.support.browsers.local_site import Reply, local_site
from tests.support.browsers.scripted_proxy import Kind, scripted_proxy
from tests.support.browsers.staged_network import StagedNetwork
from tests.support.closed_port import closed_port

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
PUBLIC, OTHER = "93.184.215.14", "93.184.215.15"
NAMES = {"site.example": ((PUBLIC,),), "other.example": ((OTHER,),), "inside.example": (("10.0.0.5",),)}
PAGES = {"/": Reply(b"<!doctype html><title>own</title>")}
FETCH = "url => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'no')"
KINDS: tuple[Kind, ...] = ("http", "socks5")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def opened(config: BrowserConfig, staged: StagedNetwork, url: str) -> AsyncIterator[tuple[PlaywrightSession, Performed]]:
    async with (
        PlaywrightBrowser(config, EnvConfig(), network=staged.network) as browser,
        browser.session(Opening(url=url, quiet_s=0.0)) as session,
    ):
        yield session, await session.open()


def configured(folder: Path, *addresses: str, **keys: object) -> BrowserConfig:
    file = folder / "proxies"
    file.write_text("\n".join(addresses))
    file.chmod(0o600)
    return BrowserConfig(viewport_width=400, viewport_height=300, proxies_file=str(file), **keys)  # type: ignore[arg-type]


@pytest.mark.parametrize("dns", ["local", "remote"])
@pytest.mark.parametrize("kind", KINDS)
async def test_pages_are_reached_through_it_and_what_is_private_is_not(kind: Kind, dns: str, tmp_path: Path) -> None:
    staged = StagedNetwork(NAMES, served={})
    async with local_site(PAGES) as site, scripted_proxy(kind, site.port, user="mine", password="right") as proxy:
        config = configured(tmp_path, proxy.url_with("right"), proxy_dns=dns)
        async with opened(config, staged, "http://site.example/") as (session, performed):
            assert not performed.navigation_error
            page = session.context.pages[0]
            assert await page.title() == "own"
            assert await page.evaluate(FETCH, "http://other.example/") == "reached"
            private = ("http://10.0.0.5/", "http://169.254.169.254/", "http://127.0.0.1:8001/", "http://wiki.corp/")
            assert {await page.evaluate(FETCH, url) for url in private} == {"no"}
        hosts = {"site.example", "other.example"} if dns == "remote" else {PUBLIC, OTHER}
        assert {host for host, _ in proxy.asked} == hosts
        assert staged.connected == []
        assert proxy.num_strangers == 0
        assert all("authorization" not in name for asked in site.asked for name in asked.headers)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_wrong_password_is_told_and_the_next_episode_takes_another(kind: Kind, tmp_path: Path) -> None:
    staged = StagedNetwork(NAMES, served={})
    async with (
        local_site(PAGES) as site,
        scripted_proxy(kind, site.port, user="mine", password="right") as bad,
        scripted_proxy(kind, site.port) as good,
        PlaywrightBrowser(
            configured(tmp_path, bad.url_with("wrong"), good.url, proxy_cooldown_s=86_000.0),
            EnvConfig(),
            network=staged.network,
        ) as browser,
    ):
        opening = Opening(url="http://site.example/", quiet_s=0.0)
        async with browser.session(opening) as session:
            said = (await session.open()).navigation_error
        assert f"the proxy {kind}://127.0.0.1:{bad.port} answered" in said
        assert "wrong" not in said
        for _ in range(2):
            async with browser.session(opening) as session:
                assert not (await session.open()).navigation_error
        assert (bad.asked, bad.num_strangers) == ([], 1)


async def test_a_dead_proxy_is_told(tmp_path: Path) -> None:
    staged = StagedNetwork(NAMES, served={})
    with closed_port() as port:
        proxied = configured(tmp_path, f"http://127.0.0.1:{port}")
        async with opened(proxied, staged, "http://site.example/") as (_, performed):
            assert f"the proxy http://127.0.0.1:{port} cannot be reached" in performed.navigation_error


SAYS = """() => new Promise(told => navigator.geolocation.getCurrentPosition(
    found => told([found.coords.latitude, found.coords.longitude]), () => told(null))).then(place => ({
    language: navigator.language, timezone: Intl.DateTimeFormat().resolvedOptions().timeZone, agent: navigator.userAgent,
    dark: matchMedia('(prefers-color-scheme: dark)').matches, number: (1234.5).toLocaleString(), place}))"""


async def test_pages_are_told_what_the_configuration_says() -> None:
    async with local_site(PAGES) as site:
        staged = StagedNetwork({}, served={"127.0.0.1": site.port, "::1": site.port})
        config = BrowserConfig(
            viewport_width=400,
            viewport_height=300,
            locale="de-DE",
            timezone="Asia/Tokyo",
            geolocation="52.5,13.4",
            user_agent="Mine/1.0",
            color_scheme="dark",
        )
        async with opened(config, staged, "http://localhost:8000/") as (session, _):
            said = await session.context.pages[0].evaluate(SAYS)
        assert said == {
            "language": "de-DE",
            "timezone": "Asia/Tokyo",
            "agent": "Mine/1.0",
            "dark": True,
            "number": "1.234,5",
            "place": [52.5, 13.4],
        }
        headers = site.asked[0].headers
        assert headers["accept-language"].startswith("de-DE")
        assert headers["user-agent"] == "Mine/1.0"


async def test_without_a_word_they_are_told_nothing_else_than_before() -> None:
    async with local_site(PAGES) as site:
        staged = StagedNetwork({}, served={"127.0.0.1": site.port, "::1": site.port})
        async with opened(BrowserConfig(), staged, "http://localhost:8000/") as (session, _):
            said = await session.context.pages[0].evaluate(SAYS)
        assert said["place"] is None
        assert not said["dark"]
        assert "HeadlessChrome" in said["agent"]
        assert sys.platform != "linux" or said["language"] == "en-US"
