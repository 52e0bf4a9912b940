"""Pages that keep the agent out, in a real Chromium: recognised, told, come to by another proxy, or lifted by a hook."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.session import PlaywrightSession
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind
from tests.support.browsers.local_site import Reply, local_site
from tests.support.browsers.scripted_proxy import scripted_proxy
from tests.support.browsers.staged_network import StagedNetwork

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SITE = "http://www.shop.example/"
NAMES = {"www.shop.example": (("93.184.215.14",),), "elsewhere.example": (("93.184.215.15",),)}
WORDS = b"<p>" + b"Lamps of all kinds and sizes. " * 40 + b"</p>"


def page(body: bytes, title: bytes = b"Lamps", **reply: object) -> Reply:
    return Reply(b"<!doctype html><title>%b</title>%b" % (title, body), **reply)  # type: ignore[arg-type]


def frame(url: str, style: str) -> bytes:
    return f'<iframe src="{url}" style="border: 0; {style}"></iframe>'.encode()


RIDDLE = "https://www.google.com/recaptcha/api2/bframe?k=1"
BOX = "https://www.google.com/recaptcha/api2/anchor?k=1&amp;size=normal"
BADGE = "https://www.google.com/recaptcha/api2/anchor?k=1&amp;size=invisible"
FORM = b"<form><input name=user><input name=password type=password><button>Log in</button></form>"
LARGE, SMALL, HIDDEN = (
    "width: 300px; height: 250px",
    "width: 90px; height: 30px",
    "visibility: hidden; width: 300px; height: 250px",
)
FAR = "position: absolute; top: -10000px; width: 300px; height: 250px"

BLOCKS: Mapping[str, tuple[str, int, Reply]] = {
    "a check by its header": ("cloudflare", 403, page(WORDS, status="403 Forbidden", headers={"cf-mitigated": "challenge"})),
    "a check by its title": ("cloudflare", 503, page(b"", b"Just a moment...", status="503 Service Unavailable")),
    "a box of its own": ("perimeterx", 403, page(b"<div id=px-captcha>Press</div>", status="403 Forbidden")),
    "a frame that is the page": (
        "datadome",
        403,
        page(frame("https://geo.captcha-delivery.com/captcha/?cid=1", LARGE), status="403 No"),
    ),
    "a riddle over a form": (
        "recaptcha",
        200,
        page(WORDS + FORM + frame(RIDDLE, f"position: fixed; top: 0; left: 0; {LARGE}")),
    ),
    "a box and nothing else": ("recaptcha", 200, page(b"<p>One more step</p>" + frame(BOX, SMALL))),
    "too many requests": ("site", 429, page(WORDS, status="429 Too Many Requests", headers={"retry-after": "120"})),
}
PAGES: Mapping[str, Reply] = {
    "an article": page(WORDS),
    "a form with a badge": page(FORM + frame(BADGE, SMALL)),
    "a form with a box": page(FORM + frame(BOX, SMALL)),
    "a form with a riddle that is hidden": page(FORM + frame(RIDDLE, HIDDEN) + frame(RIDDLE, FAR)),
    "a refusal that says nothing": page(b"<p>Forbidden</p>", b"Forbidden", status="403 Forbidden"),
    "nothing": page(b""),
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def configured(**keys: object) -> BrowserConfig:
    return BrowserConfig(viewport_width=400, viewport_height=300, challenge_wait_s=0.0, **keys)  # type: ignore[arg-type]


@asynccontextmanager
async def opened(browser: PlaywrightBrowser, url: str = SITE) -> AsyncIterator[PlaywrightSession]:
    async with browser.session(Opening(url=url, quiet_s=0.0)) as session:
        yield session


def click(x: int, y: int) -> Action:
    return Action(kind=ActionKind.CLICK, point=(x / 400 * 1000, y / 300 * 1000))


def served(port: int) -> StagedNetwork:
    return StagedNetwork(NAMES, served={"93.184.215.14": port, "93.184.215.15": port})


async def test_blocks_are_recognised_and_pages_are_not() -> None:
    replies = {f"/block{number}": reply for number, (_, _, reply) in enumerate(BLOCKS.values())}
    replies |= {f"/page{number}": reply for number, reply in enumerate(PAGES.values())}
    async with (
        local_site(replies) as site,
        PlaywrightBrowser(configured(), EnvConfig(), network=served(site.port).network) as browser,
    ):
        for number, (name, (provider, status, _)) in enumerate(BLOCKS.items()):
            async with opened(browser, f"{SITE}block{number}") as session:
                found = (await session.open()).blockage
            assert found is not None, name
            assert (found.provider, found.status, found.site, found.elsewhere) == (provider, status, "shop.example", False), (
                name
            )
        for number, name in enumerate(PAGES):
            async with opened(browser, f"{SITE}page{number}") as session:
                assert (await session.open()).blockage is None, name


async def test_when_it_may_be_asked_again_is_kept() -> None:
    async with (
        local_site({"/": BLOCKS["too many requests"][2]}) as site,
        PlaywrightBrowser(configured(), EnvConfig(), network=served(site.port).network) as browser,
        opened(browser) as session,
    ):
        found = (await session.open()).blockage
    assert found is not None
    assert (found.retry_after_s, found.egress) == (120.0, "")


async def test_a_block_that_a_click_leads_to_and_one_that_comes_without_a_document() -> None:
    link = b'<a href="/block" style="position: fixed; top: 0; left: 0; width: 100px; height: 100px; display: block">on</a>'
    riddle = frame(RIDDLE, f"position: fixed; top: 0; left: 0; {LARGE}").decode().replace('"', "'")
    button = (
        b'<button style="position: fixed; top: 100px; left: 0; width: 100px; height: 100px" '
        b'onclick="document.body.insertAdjacentHTML(\'beforeend\', this.dataset.more)" data-more="%b">send</button>'
        % riddle.encode()
    )
    replies = {"/": page(WORDS + link + button), "/block": BLOCKS["a box of its own"][2]}
    async with (
        local_site(replies) as site,
        PlaywrightBrowser(configured(), EnvConfig(), network=served(site.port).network) as browser,
    ):
        async with opened(browser) as session:
            assert (await session.open()).blockage is None
            led = await session.perform(click(50, 50))
        async with opened(browser) as session:
            assert (await session.open()).blockage is None
            grown = await session.perform(click(50, 150))
    assert led.blockage is not None
    assert (led.blockage.provider, led.num_documents) == ("perimeterx", 1)
    assert grown.blockage is not None
    assert (grown.blockage.provider, grown.num_documents) == ("recaptcha", 0)


async def test_a_block_of_another_site_is_elsewhere() -> None:
    replies = {"/": page(WORDS), "/block": BLOCKS["a box of its own"][2]}
    async with (
        local_site(replies) as site,
        PlaywrightBrowser(configured(), EnvConfig(), network=served(site.port).network) as browser,
        opened(browser) as session,
    ):
        await session.open()
        led = await session.perform(Action(kind=ActionKind.NAVIGATE, text="http://elsewhere.example/block"))
    assert led.blockage is not None
    assert (led.blockage.site, led.blockage.elsewhere) == ("elsewhere.example", True)


async def test_a_check_that_lets_the_browser_in_by_itself_is_no_block() -> None:
    check = page(
        b"<script>setTimeout(() => location.replace('/in'), 300)</script>", b"Just a moment...", status="403 Forbidden"
    )
    config = BrowserConfig(viewport_width=400, viewport_height=300, challenge_wait_s=600.0)
    async with (
        local_site({"/": check, "/in": page(WORDS)}) as site,
        PlaywrightBrowser(config, EnvConfig(), network=served(site.port).network) as browser,
        opened(browser) as session,
    ):
        assert (await session.open()).blockage is None
        assert (await session.state()).url == f"{SITE}in"


async def test_what_was_passed_over_is_no_block_until_another_document_is_one() -> None:
    async with (
        local_site({"/": BLOCKS["a box of its own"][2]}) as site,
        PlaywrightBrowser(configured(), EnvConfig(), network=served(site.port).network) as browser,
        opened(browser) as session,
    ):
        assert (await session.open()).blockage is not None
        await session.pass_over_blockage()
        assert await session.blockage() is None
        assert (await session.perform(click(399, 299))).blockage is None
        assert (await session.perform(Action(kind=ActionKind.NAVIGATE, text=SITE))).blockage is not None


async def test_a_proxy_that_a_site_blocked_is_left_alone_there_alone(tmp_path: Path) -> None:
    replies = {"/": BLOCKS["a check by its header"][2], "/page": page(WORDS)}
    async with (
        local_site(replies) as site,
        scripted_proxy("http", site.port, user="mine", password="secret") as one,
        scripted_proxy("http", site.port) as other,
    ):
        file = tmp_path / "proxies"
        file.write_text(f"{one.url_with('secret')}\n{other.url}\n")
        file.chmod(0o600)
        names = [f"http://127.0.0.1:{proxy.port}" for proxy in (one, other)]
        config = configured(proxies_file=str(file), proxy_cooldown_s=86_000.0)
        async with PlaywrightBrowser(config, EnvConfig(), network=served(site.port).network) as browser:
            async with opened(browser) as session:
                assert session.egress == names[0]
                found = (await session.open()).blockage
                assert session.has_other_egress()
            assert found is not None
            assert found.egress == names[0]
            for _ in range(2):
                async with opened(browser, "http://shop.example/page") as session:
                    assert session.egress == names[1]
            async with opened(browser) as session:
                await session.open()
                assert not session.has_other_egress()
            taken = set()
            for _ in range(2):
                async with opened(browser, "http://elsewhere.example/page") as session:
                    taken.add(session.egress)
            assert taken == set(names)
