"""A real Chromium: what an episode is shown, every way to fail, and what is left afterwards."""

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import psutil
import pytest

from browser_workers.browser import Opening, PageState
from browser_workers.chromium import navigation
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.page_stability import PageStability
from browser_workers.chromium.process.executable import find_chromium
from browser_workers.chromium.process.launch import chromium
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.site import Documents
from browser_workers.suites.demo import DemoSuite, demo_tasks
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from schemas.errors import BrowserLost, PageFailed
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S
from tests.support.browsers.patience import wait_for_pages

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://pages.test"
SIZE = (400, 300)

HOME = b"""<!doctype html><title>home</title><body style="margin:0;height:3000px">
<style>a,input,button{position:absolute;left:0;width:400px;height:40px} #hover:hover{background:#f00}</style>
<a href="/second" style="top:50px">second</a>
<button style="top:100px" onclick="window.open('/popup')">window</button>
<button style="top:200px" id=hover>hover</button>
<button style="top:250px" onclick="fetch('/second').then(() => { document.title = 'fetched' })">get</button>"""
PAGES = {
    "/": HOME,
    "/second": b"<!doctype html><title>second</title><p>two",
    "/popup": b"<!doctype html><title>popup</title><button onclick='window.close()' style='width:99vw;height:99vh'>close",
    "/far": b"<!doctype html><title>far</title><a href='http://127.0.0.1:1/' style='position:fixed;inset:0'>away",
    "/cookie": b"<!doctype html><script>document.title = document.cookie + localStorage.a; document.cookie = 'a=1';"
    b"localStorage.a = 1</script>",
}
SITE = Documents(origin=ORIGIN, documents=PAGES)


def opening(path: str = "/", **changes: object) -> Opening:
    settings: dict[str, object] = {"site": SITE, "quiet_s": 0.05, **changes}
    return Opening(url=ORIGIN + path, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with PlaywrightBrowser(config(), EnvConfig()) as browser:
        yield browser


def config(**changes: object) -> BrowserConfig:
    settings: Mapping[str, object] = {
        "viewport_width": SIZE[0],
        "viewport_height": SIZE[1],
        "private_hosts": ("127.0.0.0/8",),
        **changes,
    }
    return BrowserConfig(**settings)  # type: ignore[arg-type]


def at(x: float, y: float) -> tuple[float, float]:
    return x / SIZE[0] * 1000, y / SIZE[1] * 1000


def click(y: float) -> Action:
    return Action(kind=ActionKind.CLICK, point=at(100, y))


def chromium_processes(kind: str = "") -> list[psutil.Process]:
    def is_wanted(child: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return "chrom" in child.name() and kind in " ".join(child.cmdline())
        return False

    return [child for child in psutil.Process().children(recursive=True) if is_wanted(child)]


async def title(session: PlaywrightSession) -> str:
    return (await session.state()).title


async def test_open_and_view(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening()) as session:
        performed = await session.open()
        view = await session.view()
    assert performed.navigation_error == ""
    assert view.state == PageState(url=f"{ORIGIN}/", title="home")
    assert (view.screenshot.width, view.screenshot.height, view.screenshot.media_type) == (*SIZE, "image/jpeg")
    assert view.screenshot.data.startswith(b"\xff\xd8")
    assert not view.blank


async def test_png_by_choice_and_blank_pages() -> None:
    page = Opening(url="about:blank", quiet_s=0.0)
    async with PlaywrightBrowser(config(screenshot_format="png"), EnvConfig()) as browser, browser.session(page) as session:
        await session.open()
        view = await session.view()
    assert view.screenshot.data.startswith(b"\x89PNG")
    assert view.blank


async def test_click_and_go_back(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening()) as session:
        await session.open()
        back = Action(kind=ActionKind.GO_BACK)
        refused = await session.perform(back)
        assert refused.beyond_start
        assert refused.refused
        await session.perform(click(70))
        assert await title(session) == "second"
        await session.perform(back)
        assert await title(session) == "home"
        assert (await session.perform(back)).beyond_start


async def test_scroll_hover_and_wait(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening()) as session:
        await session.open()
        before = await session.view()
        await session.perform(Action(kind=ActionKind.HOVER, point=at(100, 220)))
        hovered = await session.view()
        assert hovered.screenshot.data != before.screenshot.data
        await session.perform(Action(kind=ActionKind.SCROLL))
        down = await session.view()
        assert down.screenshot.data != hovered.screenshot.data
        await session.perform(Action(kind=ActionKind.SCROLL, direction="up", point=(500, 500)))
        await session.perform(Action(kind=ActionKind.WAIT, seconds=0.01))
        await session.perform(Action(kind=ActionKind.HOVER, point=at(100, 220)))
        assert (await session.view()).screenshot.data == hovered.screenshot.data


async def test_navigate(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening()) as session:
        await session.open()
        await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{ORIGIN}/second"))
        assert await title(session) == "second"
        performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text="file:///etc/passwd"))
        assert "no http(s) address" in performed.refused
        performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text="http://127.0.0.1:1/"))
        assert "ERR_" in performed.navigation_error
        assert (await session.view()).state.url.startswith("chrome-error:")


async def test_a_link_that_leads_nowhere_is_said(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening("/far")) as session:
        await session.open()
        performed = await session.perform(click(100))
        assert "could not be reached" in performed.navigation_error


async def test_what_a_click_fetches_is_waited_for(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_pages(monkeypatch)
    async with browser.session(opening()) as session:
        await session.open()
        await session.perform(click(270))
        assert await title(session) == "fetched"


async def test_a_new_window_becomes_the_page(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_pages(monkeypatch)
    async with browser.session(opening()) as session:
        await session.open()
        performed = await session.perform(click(120))
        assert "window" in performed.notice
        assert await title(session) == "popup"
        await session.perform(click(120))
        assert await title(session) == "home"
        await session.perform(click(120))
        assert await title(session) == "popup"
        await session.perform(Action(kind=ActionKind.GO_BACK))
        assert await title(session) == "home"


@pytest.mark.parametrize("keeps_no_state", [False, True])
async def test_episodes_share_nothing(browser: PlaywrightBrowser, keeps_no_state: bool) -> None:
    page = opening("/cookie", keeps_no_state=keeps_no_state)
    for _ in range(2):
        async with browser.session(page) as session:
            await session.open()
            assert await title(session) == "undefined"
    async with browser.session(page) as first, browser.session(page) as second:
        await first.open()
        await second.open()
        assert await title(second) == "undefined"


async def test_a_tab_that_strayed_is_not_used_again(browser: PlaywrightBrowser) -> None:
    page = Opening(url="http://own.test/", site=Documents("http://own.test", PAGES), keeps_no_state=True, quiet_s=0.0)
    contexts = []
    for away in (False, True, False):
        async with browser.session(page) as session:
            await session.open()
            contexts.append(session.context)
            if away:
                await session.perform(Action(kind=ActionKind.NAVIGATE, text="http://127.0.0.1:1/"))
    assert contexts[0] == contexts[1] != contexts[2]


async def test_a_page_that_hangs_ends_within_its_deadline() -> None:
    others = chromium_processes("--type=renderer")
    async with PlaywrightBrowser(config(), EnvConfig(operation_timeout=HANGS_S)) as browser:
        async with browser.session(opening()) as session:
            await session.open()
            calls = (await session._windows.active())._calls
            assert calls.timeout_s == HANGS_S
            calls.timeout_s = 1.0
            for renderer in chromium_processes("--type=renderer"):
                if renderer not in others:
                    renderer.suspend()
            with pytest.raises(PageFailed, match=r"process was stopped|did not return within 1 s"):
                await session.perform(click(70))
        async with browser.session(opening()) as session:
            await session.open()
            assert await title(session) == "home"


async def _answer(stream: anyio.abc.SocketStream) -> None:
    """A site of addresses that lead to no document at once, and of one that never answers."""
    answers = {
        "/empty": b"HTTP/1.1 204 No Content\r\n\r\n",
        "/file": b"HTTP/1.1 200 OK\r\nContent-Disposition: attachment\r\nContent-Length: 1\r\nContent-Type: a/b\r\n\r\nx",
        "/moved": b"HTTP/1.1 302 Found\r\nLocation: /second\r\nContent-Length: 0\r\n\r\n",
        "/second": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 21\r\n\r\n<title>second</title>",
    }
    async with stream:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                path = (await stream.receive()).split()[1].decode()
                if path in answers:
                    await stream.send(answers[path])


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, _answer)
        yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


def links(address: str) -> Documents:
    link = f"<!doctype html><title>here</title><a href='{address}' style='position:fixed;inset:0'>away".encode()
    return Documents(origin=ORIGIN, documents=PAGES | {"/link": link})


@pytest.mark.parametrize(("path", "expected"), [("/empty", "here"), ("/file", "here"), ("/moved", "second")])
async def test_links_that_lead_to_no_document_at_once_hold_nothing_up(
    browser: PlaywrightBrowser, site: str, path: str, expected: str
) -> None:
    async with browser.session(opening("/link", site=links(site + path))) as session:
        await session.open()
        with anyio.fail_after(HANGS_S):
            performed = await session.perform(click(100))
        assert performed.navigation_error == ""
        assert await title(session) == expected


def be_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sites are given up soon after they were asked from now on; the browser itself may take its time until they are."""
    settle = PageStability.settle

    async def until_asked(stability: PageStability, cap_s: float) -> None:
        with anyio.CancelScope() as scope:
            stability._calls.page.once("request", lambda _: scope.cancel())
            if stability.loading.navigation is None:
                await settle(stability, cap_s)

    wait_for_pages(monkeypatch)
    monkeypatch.setattr(PageStability, "settle", until_asked)
    monkeypatch.setattr(navigation, "LOAD_CAP_S", 1.0)


async def test_a_site_that_never_answers_is_given_up(
    browser: PlaywrightBrowser, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser.session(opening("/link", site=links(f"{site}/never"))) as session:
        await session.open()
        be_impatient(monkeypatch)
        for action in (click(100), Action(kind=ActionKind.NAVIGATE, text=f"{site}/never")):
            performed = await session.perform(action)
            assert performed.navigation_error == f"{site}/never did not answer within 1 s"
            assert await title(session) == "here"


async def test_a_site_that_is_asked_before_the_click_is_over_is_given_up_too(
    browser: PlaywrightBrowser, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager = f"<!doctype html><title>here</title><body onmousedown='location = \"{site}/never\"' style='height: 400px'>"
    pages = Documents(origin=ORIGIN, documents=PAGES | {"/eager": eager.encode()})
    async with browser.session(opening("/eager", site=pages)) as session:
        await session.open()
        be_impatient(monkeypatch)
        performed = await session.perform(click(100))
        assert performed.navigation_error == f"{site}/never did not answer within 1 s"
        assert await title(session) == "here"


async def test_old_browsers_are_replaced_when_their_last_episode_ends() -> None:
    async with PlaywrightBrowser(config(), EnvConfig(instance_lifetime_max=0.0)) as browser:
        async with browser.session(opening()) as first:
            await first.open()
            async with browser.session(opening()) as second:
                await second.open()
            assert await title(first) == "home"
        assert browser.num_launches == 2


async def test_a_browser_that_ends_while_it_comes_up_is_started_again(tmp_path: Path) -> None:
    executable = tmp_path / "chromium"
    executable.write_text(f'#!/bin/sh\nmkdir {tmp_path}/tried 2>/dev/null && exit 1\nexec {find_chromium()} "$@"\n')
    executable.chmod(0o755)
    async with chromium(executable, (640, 480), timeout_s=HANGS_S) as running:
        assert await running.browser.new_page()
    assert (tmp_path / "tried").is_dir()


async def test_a_browser_that_never_comes_up_is_given_up(tmp_path: Path) -> None:
    executable = tmp_path / "chromium"
    executable.write_text(f"#!/bin/sh\necho >>{tmp_path}/tries\nexit 1\n")
    executable.chmod(0o755)
    with pytest.raises(BrowserLost, match="could not be started"):
        async with chromium(executable, (640, 480), timeout_s=HANGS_S):
            pass
    assert len((tmp_path / "tries").read_text().splitlines()) == 3


async def test_nothing_is_left_after_closing() -> None:
    before = {process.pid for process in chromium_processes()}
    async with PlaywrightBrowser(config(), EnvConfig()) as browser, browser.session(opening()) as session:
        await session.open()
        mine = [process for process in chromium_processes() if process.pid not in before]
        assert mine
    gone, alive = psutil.wait_procs(mine, timeout=HANGS_S)
    assert (len(gone), alive) == (len(mine), [])


async def test_demo_task_lines_come_from_the_pages(browser: PlaywrightBrowser) -> None:
    lines = await demo_tasks(browser, "find_button", range(5, 8), first_id=100)
    assert [line["task_id"] for line in lines] == [100, 101, 102]
    assert lines[0]["website"] == "demo:find_button?seed=5"
    assert all(str(line["task_name"]).startswith("Click the ") for line in lines)
    async with browser.session(DemoSuite().resolve("find_button", "seed=5")) as session:
        await session.open()
        environment = (await session.state()).environment
        assert environment is not None
        assert environment.utterance == lines[0]["task_name"]
        await session.perform(Action(kind=ActionKind.NAVIGATE, text="http://demo.millrace.test/find_button?seed=6"))
        assert (await session.state()).environment is None, "no other page rewards"


WORKER = """
import sys
import anyio
from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from ops.processes.temporary_files import own_temporary_files
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig

async def main():
    async with PlaywrightBrowser(BrowserConfig(), EnvConfig()) as browser:
        async with browser.session(Opening(url="about:blank")) as session:
            await session.open()
            print("ready", flush=True)
            await anyio.sleep_forever()

with own_temporary_files("browser"):
    anyio.run(main)
"""


def profiles(root: Path) -> list[Path]:
    return list(root.glob("*/playwright_chromiumdev_profile-*"))


@pytest.fixture
def short_path() -> Iterator[Path]:
    """For sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


async def test_what_a_killed_worker_had_started_ends_with_it(short_path: Path) -> None:
    """Its browser at once, and their files when the next worker starts."""
    environment = os.environ | {"TMPDIR": str(short_path)}

    async def killed() -> Path:
        async with await anyio.open_process([sys.executable, "-c", WORKER], stderr=None, env=environment) as worker:
            assert worker.stdout is not None
            seen = b""
            while b"ready" not in seen:
                seen += await worker.stdout.receive()
            chromium = [child for child in psutil.Process(worker.pid).children(recursive=True) if "chrom" in child.name()]
            assert chromium
            (profile,) = await anyio.to_thread.run_sync(profiles, short_path)
            worker.kill()
            await worker.wait()
            _, alive = await anyio.to_thread.run_sync(lambda: psutil.wait_procs(chromium, timeout=HANGS_S))
            assert alive == []
        return profile.parent

    assert await killed() != await killed()
