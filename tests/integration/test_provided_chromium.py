"""Real Chromiums behind a scripted provider's sessions: played in the default context, at the configured size."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.interception import Interception
from browser_workers.providers.choosing import provider_of
from browser_workers.providers.leases import Leases, Owner
from browser_workers.site import Documents
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from schemas.errors import BrowserLost, PageFailed
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S
from tests.support.browsers.patience import wait_for_pages
from tests.support.browsers.provided_doubles import Chromiums
from tests.support.browsers.scripted_provider import KEY, Fault, ScriptedProvider, scripted_provider

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://pages.test"
LINK = b"<!doctype html><title>here</title><a href='/second' target='_blank' style='position:fixed;inset:0'>second"
SITE = Documents(ORIGIN, {"/": LINK, "/second": b"<!doctype html><title>second</title><script>localStorage.x = 1</script>"})
OPENING = Opening(url=f"{ORIGIN}/", site=SITE, quiet_s=0.0, episode="train-1")
CLICK = Action(kind=ActionKind.CLICK, point=(500, 500))
SIZE = "[innerWidth, innerHeight, devicePixelRatio].join()"


@asynccontextmanager
async def provided(
    folder: Path, *faults: Fault, arguments: tuple[str, ...] = (), **changes: object
) -> AsyncIterator[tuple[ScriptedProvider, PlaywrightBrowser, Leases]]:
    behind = Chromiums(folder, *arguments)

    def fault(number: int) -> Fault:
        return faults[number] if number < len(faults) else Fault.NONE

    async with scripted_provider(behind, faults=fault) as provider:
        config = BrowserConfig(
            provider="browserbase",
            provider_url=provider.url,
            viewport_width=400,
            viewport_height=300,
            **changes,  # type: ignore[arg-type]
        )
        leases = Leases(provider_of(config, {"BROWSERBASE_API_KEY": KEY}), Owner("run", "browser-1"), wait_s=HANGS_S)
        try:
            with anyio.fail_after(HANGS_S):
                async with PlaywrightBrowser(config, EnvConfig(), leases=leases) as browser:
                    yield provider, browser, leases
        finally:
            await behind.stop_all()


async def test_episodes_in_the_default_context_of_sessions_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_pages(monkeypatch)
    async with provided(tmp_path, color_scheme="dark") as (provider, browser, _):
        for _ in range(2):
            async with browser.session(OPENING) as session:
                assert session.context is session.context.browser.contexts[0]  # type: ignore[union-attr]
                assert isinstance(session.reach, Interception)
                assert len(session.context.pages) == 1, "what the session began with is closed"
                await session.open()
                assert await session.page_values([SIZE, "matchMedia('(prefers-color-scheme: dark)').matches"]) == (
                    "400,300,1",
                    "true",
                )
                performed = await session.perform(CLICK)
                assert "a new window was opened" in performed.notice
                assert await session.page_values([SIZE, "localStorage.x"]) == ("400,300,1", "1")
                await session.perform(Action(kind=ActionKind.NEW_TAB))
                assert await session.page_values([SIZE]) == ("400,300,1",)
                view = await session.view()
                assert (view.screenshot.width, view.screenshot.height) == (400, 300)
                assert len(view.state.tabs) == 3
        assert [session.why_ended for session in provider.sessions.values()] == ["released"] * 2
        assert [session.carried["episode"] for session in provider.sessions.values()] == ["train-1"] * 2
        assert browser.num_launches == 2


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.EXPIRED])
async def test_a_session_that_ends_in_mid_episode_is_a_browser_that_is_lost(tmp_path: Path, fault: Fault) -> None:
    async with provided(tmp_path) as (provider, browser, leases):

        async def play() -> None:
            async with browser.session(OPENING) as session:
                await provider.finish(provider.running[0], fault)
                if fault is Fault.EXPIRED:
                    await leases.look()
                raise await session.wait_failed()

        with pytest.raises(BrowserLost):
            await play()
        async with browser.session(OPENING) as session:
            await session.open()
        assert not provider.running


async def test_a_session_that_nobody_answers_in_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.chromium.instances.START_S", 1.0)
    async with provided(tmp_path, Fault.UNREACHABLE) as (provider, browser, _):
        with pytest.raises(BrowserLost, match="could not be"):
            async with browser.session(OPENING):
                pass
        assert not provider.running


async def test_a_window_is_brought_to_the_configured_size_or_not_played_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--window-size=900,700", "--force-device-scale-factor=2")
    async with provided(tmp_path, arguments=arguments) as (provider, browser, _):
        async with browser.session(OPENING) as session:
            await session.open()
            assert await session.page_values([SIZE]) == ("400,300,1",)
        monkeypatch.setattr("browser_workers.chromium.session_pages._SEEN", "() => [900, 700, 2]")
        with pytest.raises(PageFailed, match=r"900 x 700 at 2 pixels a point: .* say 400 x 300 at 1"):
            async with browser.session(OPENING):
                pass
        assert not provider.running


async def test_private_addresses_are_refused_there_too(tmp_path: Path) -> None:
    async with provided(tmp_path, denied_hosts=("denied.test",)) as (_, browser, _), browser.session(OPENING) as session:
        await session.open()
        for url in ("http://127.0.0.1:1/", "http://169.254.169.254/", "http://a.denied.test/"):
            assert (await session.perform(Action(kind=ActionKind.NAVIGATE, text=url))).navigation_error
