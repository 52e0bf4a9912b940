"""A browser that somebody else runs: episodes in it, its end, its return, and what is left alone."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.abc
import pytest
from playwright.async_api import Browser, Dialog, Page, Playwright, async_playwright

from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.interception import Interception
from browser_workers.chromium.process.launch import Chromium
from browser_workers.chromium.process.remote import _reaches_gates, socket_address
from browser_workers.network.gate import Gate
from browser_workers.providers.provider import Place
from browser_workers.site import Documents
from bus.server.ports import held_port
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from schemas.errors import BrowserLost
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S
from tests.support.browsers.local_site import LocalSite, Reply, local_site
from tests.support.browsers.other_chromium import kill, other_chromium

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://pages.test"
LINK = b"<!doctype html><title>here</title><a href='/second' style='position:fixed;inset:0'>second"
SITE = Documents(ORIGIN, {"/": LINK, "/second": b"<!doctype html><title>second"})
OPENING = Opening(url=f"{ORIGIN}/", site=SITE, quiet_s=0.0)
CLICK = Action(kind=ActionKind.CLICK, point=(500, 500))
FETCH = "url => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'no')"
SOCKET = "url => new Promise(done => { const it = new WebSocket(url); it.onmessage = it.onclose = e => done(e.data ?? 'no') })"


@asynccontextmanager
async def chromium(profile: Path, port: int = 0) -> AsyncIterator[tuple[anyio.abc.Process, int]]:
    """Its process, and the port of its DevTools."""
    async with other_chromium(profile, port) as (process, address):
        yield process, urlsplit(address).port or 0


async def connected(playwright: Playwright, port: int) -> Browser:
    """To the browser at this port as to a stranger's."""
    return await playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}", timeout=1000 * HANGS_S)


async def patient_page(browser: Browser) -> Page:
    """In a context of its own."""
    context = await browser.new_context()
    context.set_default_timeout(1000 * HANGS_S)
    return await context.new_page()


def config(port: int, **changes: object) -> BrowserConfig:
    url = f"http://127.0.0.1:{port}"
    return BrowserConfig(viewport_width=400, viewport_height=300, cdp_url=url, **changes)  # type: ignore[arg-type]


async def play(browser: PlaywrightBrowser) -> None:
    async with browser.session(OPENING) as session:
        await session.open()
        await session.perform(CLICK)
        view = await session.view()
    assert view.state.title == "second"
    assert (view.screenshot.width, view.screenshot.height) == (400, 300)


async def test_killed_in_mid_episode_and_back_on_the_same_port(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        port = stack.enter_context(held_port())
        process, _ = await stack.enter_async_context(chromium(tmp_path / "one", port))
        browser = await stack.enter_async_context(PlaywrightBrowser(config(port), EnvConfig()))
        await play(browser)
        async with browser.session(OPENING) as session:
            await session.open()
            kill(process)
            with anyio.fail_after(HANGS_S):
                assert isinstance(await session.wait_failed(), BrowserLost)
            with pytest.raises(BrowserLost):
                await session.view()
        played = anyio.Event()

        async def play_early() -> None:
            await play(browser)
            played.set()

        async with anyio.create_task_group() as group:
            # The next episode waits for it to be there again.
            group.start_soon(play_early)
            await process.wait()
            async with chromium(tmp_path / "two", port):
                await play(browser)
                await played.wait()
        assert browser.num_launches == 2


async def test_of_several_browsers_each_plays_and_one_that_is_lost_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("browser_workers.providers.addresses._COOLDOWN_S", HANGS_S)
    async with other_chromium(tmp_path / "one") as (process, first), other_chromium(tmp_path / "two") as (_, second):
        settings = BrowserConfig(viewport_width=400, viewport_height=300, cdp_urls=(first, second))
        async with PlaywrightBrowser(settings, EnvConfig()) as browser:
            async with browser.session(OPENING) as session, browser.session(OPENING) as other:
                assert session.context.browser is not other.context.browser
                await other.open()
                kill(process)
                with anyio.fail_after(HANGS_S):
                    assert isinstance(await session.wait_failed(), BrowserLost)
                await other.view()
            # The other browser is connected to by now.
            monkeypatch.setattr("browser_workers.chromium.instances.START_S", 1.0)
            with pytest.raises(BrowserLost):
                async with browser.session(OPENING):
                    pass
            for _ in range(3):
                async with browser.session(OPENING) as session:
                    assert session.context.browser is other.context.browser


async def test_a_browser_that_is_not_there_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.chromium.instances.START_S", 1.0)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with PlaywrightBrowser(config(port), EnvConfig()) as browser:
        with pytest.raises(BrowserLost, match=rf"the browser at http://127\.0\.0\.1:{port} could not be"):
            async with browser.session(OPENING):
                pass


async def test_what_others_do_in_it_is_left_alone(tmp_path: Path) -> None:
    async with chromium(tmp_path) as (process, port), async_playwright() as other:
        theirs = await connected(other, port)
        page = await patient_page(theirs)
        dialogs: list[Dialog] = []
        asked = anyio.Event()

        def on_dialog(dialog: Dialog) -> None:
            dialogs.append(dialog)
            asked.set()

        page.on("dialog", on_dialog)
        async with PlaywrightBrowser(config(port), EnvConfig()) as browser:
            await play(browser)
            # They are asked something while episodes go on.
            await page.evaluate("() => void setTimeout(() => { document.title = confirm('?') ? 'yes' : 'no' })")
            await asked.wait()
            await play(browser)
            await dialogs[0].accept()
            await page.wait_for_function("document.title")
            async with browser.session(OPENING) as session:
                await session.open()
        assert await page.title() == "yes", "a stranger answered"
        assert process.returncode is None
        found = await (await theirs.new_browser_cdp_session()).send("Target.getTargets")
        assert not [each for each in found["targetInfos"] if each["url"].startswith(ORIGIN)], "a page of the episodes is left"


async def test_its_pages_pass_the_gate_and_never_reach_its_devtools(tmp_path: Path) -> None:
    async with local_site({"/": Reply(b"<!doctype html><title>site</title>")}) as site, chromium(tmp_path) as (_, port):
        settings = config(port, private_hosts=("127.0.0.0/8",), denied_hosts=("denied.localhost",))
        own = Opening(url=f"{site.origin}/", quiet_s=0.0)
        async with PlaywrightBrowser(settings, EnvConfig()) as browser, browser.session(own) as session:
            assert not (await session.open()).navigation_error
            assert isinstance(session.reach, Gate)
            page = session.context.pages[0]
            assert await page.evaluate(FETCH, f"http://localhost:{site.port}/") == "reached"
            assert await page.evaluate(FETCH, f"http://denied.localhost:{site.port}/") == "no"
            assert await page.evaluate(FETCH, f"http://localhost:{port}/json/version") == "no"
            assert "DevTools" in session.reach.why_blocked("localhost")


async def test_where_the_gate_is_out_of_reach_requests_are_judged_by_their_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no(*_: object) -> bool:
        return False

    monkeypatch.setattr("browser_workers.chromium.process.remote._reaches_gates", no)
    async with (
        local_site({"/": Reply(b"<!doctype html><title>site</title>")}) as site,
        local_site({}) as neighbour,
        chromium(tmp_path) as (_, port),
        PlaywrightBrowser(config(port, denied_hosts=("denied.test",)), EnvConfig()) as browser,
    ):
        await play(browser)
        await judged_by_address(browser, site, neighbour)


async def judged_by_address(browser: PlaywrightBrowser, site: LocalSite, neighbour: LocalSite) -> None:
    async with browser.session(Opening(url=f"{site.origin}/", quiet_s=0.0)) as session:
        assert not (await session.open()).navigation_error
        assert isinstance(session.reach, Interception)
        page = session.context.pages[0]
        assert await page.evaluate(SOCKET, f"ws://127.0.0.1:{site.port}/socket") == "hello"
        for name in ("127.0.0.1", "localhost", "[::1]"):
            assert await page.evaluate(FETCH, f"http://{name}:{neighbour.port}/") == "no"
            assert await page.evaluate(SOCKET, f"ws://{name}:{neighbour.port}/socket") == "no"
        assert "a loopback address" in session.reach.why_blocked("localhost")
        assert await page.evaluate(FETCH, "http://a.denied.test/") == "no"
        assert "denied_hosts" in session.reach.why_blocked("a.denied.test")
        performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{neighbour.origin}/"))
        assert performed.navigation_error
    assert neighbour.asked == []


async def test_what_others_ask_for_there_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no(*_: object) -> bool:
        return False

    monkeypatch.setattr("browser_workers.chromium.process.remote._reaches_gates", no)
    monkeypatch.setattr("browser_workers.chromium.all_requests._ANSWER_S", HANGS_S)
    async with local_site({"/": Reply(LINK)}) as neighbour, AsyncExitStack() as stack:
        leads = Reply(status="302 Found", headers={"location": f"http://127.0.0.1:{neighbour.port}/"})
        site = await stack.enter_async_context(local_site({"/": Reply(LINK), "/leads": leads}))
        _, port = await stack.enter_async_context(chromium(tmp_path))
        browser = await stack.enter_async_context(PlaywrightBrowser(config(port), EnvConfig()))
        first = await stack.enter_async_context(browser.session(Opening(url=f"{site.origin}/", quiet_s=0.0)))
        second = await stack.enter_async_context(browser.session(Opening(url=f"{neighbour.origin}/", quiet_s=0.0)))
        for session in (first, second):
            assert not (await session.open()).navigation_error
        assert await first.context.pages[0].evaluate(FETCH, f"{site.origin}/leads") == "no"
        playwright = await stack.enter_async_context(async_playwright())
        page = await patient_page(await connected(playwright, port))
        await page.goto(f"{site.origin}/leads")
        await page.evaluate("document.body.append(Object.assign(document.createElement('iframe'), {srcdoc: '<p>in it'}))")
        await page.frame_locator("iframe").get_by_text("in it").wait_for()
        for frame in page.frames:
            assert await frame.evaluate(FETCH, f"{site.origin}/leads") == "reached"


async def test_the_gate_is_found_out_of_reach_behind_a_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, the browser's loopback is not this process's: what the gate calls its address leads nowhere."""
    monkeypatch.setattr(Gate, "proxy", property(lambda gate: f"http://127.0.0.9:{gate.port}"))
    async with (
        chromium(tmp_path) as (_, port),
        PlaywrightBrowser(config(port), EnvConfig()) as browser,
        browser.session(OPENING) as session,
    ):
        await session.open()
        assert isinstance(session.reach, Interception)


async def test_the_token_is_sent_and_shown_to_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MILLRACE_CDP_TOKEN", "the-secret")
    version = Reply(b'{"webSocketDebuggerUrl": "ws://elsewhere.example/devtools/browser/1"}')
    async with local_site({"/json/version?key=also-secret": version}) as service:
        settings = BrowserConfig(cdp_url=f"{service.origin}/?key=also-secret")
        # It fails when the patience is over. On a busy machine any try may be cut off before it asks for the socket.
        for patience_s in (5.0, 30.0, HANGS_S):
            monkeypatch.setattr("browser_workers.chromium.instances.START_S", patience_s)
            async with PlaywrightBrowser(settings, EnvConfig()) as browser:
                with pytest.raises(BrowserLost) as lost:
                    async with browser.session(OPENING):
                        pass
            paths = [asked.path for asked in service.asked]
            if any(path.startswith("/devtools/") for path in paths):
                break
        assert list(dict.fromkeys(paths)) == ["/json/version?key=also-secret", "/devtools/browser/1?key=also-secret"]
        assert {asked.headers.get("authorization") for asked in service.asked} == {"Bearer the-secret"}
    shown_to_people = str(lost.value) + "".join(capsys.readouterr())
    assert "secret" not in shown_to_people


async def test_a_browser_that_ends_while_it_is_tried_is_no_crash(tmp_path: Path) -> None:
    async with chromium(tmp_path) as (process, port), async_playwright() as playwright:
        browser = await connected(playwright, port)
        running = Chromium(browser, await browser.new_browser_cdp_session())
        ended = anyio.Event()
        browser.on("disconnected", lambda _: ended.set())
        kill(process)
        with anyio.fail_after(HANGS_S):
            await ended.wait()
            with pytest.raises(BrowserLost):
                await _reaches_gates(running, f"http://127.0.0.1:{port}")


def test_where_a_browsers_socket_is() -> None:
    announced = "ws://localhost/devtools/browser/1"
    assert socket_address("http://127.0.0.1:9222", announced) == "ws://127.0.0.1:9222/devtools/browser/1"
    assert socket_address("https://a.example/chrome/?k=v", announced) == "wss://a.example/chrome/devtools/browser/1?k=v"
    assert Place("wss://me:secret@a.example:1/x?token=secret").shown == "wss://a.example:1/x"
