"""What failed on a page is told where the run shows it, by real pages in real Chromium."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from browser_workers.browser import Opening
from browser_workers.chromium import page_stability
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.page_errors import MOST, MOST_SAID
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.site import Documents
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://pages.test"
CLICK = Action(kind=ActionKind.CLICK, point=(500, 500))
WAIT = Action(kind=ActionKind.WAIT, seconds=0.5)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with PlaywrightBrowser(BrowserConfig(), EnvConfig(), ContextConfig(page_errors=True)) as browser:
        yield browser


@asynccontextmanager
async def on(browser: PlaywrightBrowser, script: str, clicked: str = "") -> AsyncIterator[PlaywrightSession]:
    """A session on a page that runs one script as it opens, and one at every click."""
    page = f"<!doctype html><title>t</title><script>{script};addEventListener('click', () => {{ {clicked} }})</script>"
    site = Documents(ORIGIN, {"/": page.encode()})
    async with browser.session(Opening(url=f"{ORIGIN}/", site=site, quiet_s=0.2)) as session:
        await session.open()
        yield session


async def test_errors_of_every_kind_are_told_without_what_addresses_ask_for(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_stability, "_TRAFFIC_CAP_S", HANGS_S)
    script = (
        "console.error('no', 3); console.warn('no matter');"
        "setTimeout(() => { throw new TypeError('not a number') });"
        "fetch('/missing?token=secret'); fetch('http://127.0.0.1:9/?token=secret').catch(() => {})"
    )
    async with on(browser, script) as session:
        told = (await session.view()).page_errors
    assert set(told) == {
        "console: no 3",
        "uncaught: not a number",
        f"GET {ORIGIN}/missing: 404",
        "GET http://127.0.0.1:9/: net::ERR_UNSAFE_PORT",
    }


async def test_an_error_is_told_until_the_next_action_and_then_no_more(browser: PlaywrightBrowser) -> None:
    async with on(browser, "console.error('first')", "console.error('again'); console.error('again')") as session:
        assert (await session.view()).page_errors == ("console: first",)
        assert (await session.view()).page_errors == ("console: first",), "whoever looks twice sees the same"
        await session.perform(CLICK)
        assert (await session.view()).page_errors == ("console: again (2 times)",)
        await session.perform(WAIT)
        assert (await session.view()).page_errors == ()


async def test_what_is_kept_is_bounded(browser: PlaywrightBrowser) -> None:
    async with on(browser, "for (let i = 0; i < 500; i++) console.error(i + 'x'.repeat(10000))") as session:
        told = (await session.view()).page_errors
    assert len(told) == MOST + 1
    assert told[-1].startswith("and others (")
    assert max(map(len, told)) < 300


async def test_a_console_that_was_too_loud_is_heard_again_after_the_next_action(browser: PlaywrightBrowser) -> None:
    loud = f"for (let i = 0; i < {MOST_SAID}; i++) console.log(i, i); setTimeout(() => console.error('unheard'), 100)"
    async with on(browser, loud, "console.error('heard')") as session:
        assert (await session.view()).page_errors == ("and others",)
        await session.perform(CLICK)
        assert (await session.view()).page_errors == ("console: heard",)


async def test_nothing_is_told_where_the_run_does_not_ask_for_it() -> None:
    async with (
        PlaywrightBrowser(BrowserConfig(), EnvConfig()) as browser,
        on(browser, "console.error('no')") as session,
    ):
        assert (await session.view()).page_errors == ()
