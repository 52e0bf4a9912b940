"""A real Chromium that dies, stands still or eats memory: noticed within a second, whatever was under way, and replaced."""

import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import psutil
import pytest

from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.process.processes import Part, ProcessTree
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.providers.provider import Place
from browser_workers.site import Documents
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig, HttpPools
from schemas.errors import BrowserError, BrowserLost, ConfigurationError, PageFailed
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://pages.test"
PROFILE = "--user-data-dir="
NOTICED_S = HANGS_S
BOUND_MB = 300
GROW = (
    "<!doctype html><title>bomb</title><body><script>const kept = []; let left = %d; "
    "const grow = () => { if (left-- > 0) { %s } }; setInterval(grow, 1)</script>"
)
"""To three or four times the bound, and not beyond: on a busy machine it may be looked at late."""
PAGES = {
    "/": "<!doctype html><title>home</title><p>here",
    "/heavy": "<!doctype html><title>heavy</title><body style='height:100vh' onclick='for (;;) {}'>",
    "/buffers": GROW % (56, "kept.push(new Uint8Array(16 << 20).fill(1))"),
    "/heap": GROW % (225, "for (let i = 0; i < 200000; i++) kept.push({ i })"),
    "/elements": GROW
    % (8, "const box = document.createElement('div'); box.innerHTML = '<p>word</p>'.repeat(50000); document.body.append(box)"),
}
SITE = Documents(origin=ORIGIN, documents={path: page.encode() for path, page in PAGES.items()})
CLICK = Action(kind=ActionKind.CLICK, point=(500, 500))


def opening(path: str = "/", *, keeps_no_state: bool = False) -> Opening:
    return Opening(url=ORIGIN + path, site=SITE, quiet_s=0.0, keeps_no_state=keeps_no_state)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with PlaywrightBrowser(BrowserConfig(page_memory_mb=BOUND_MB), EnvConfig()) as browser:
        yield browser


def pids(part: Part) -> list[int]:
    """Of the browser that was started last."""
    drivers = [child for child in psutil.Process().children() if "node" in child.name()]
    tree = ProcessTree(max(drivers, key=psutil.Process.create_time))
    return [pid for pid, seen in tree.look().items() if seen.part is part]


def strike(part: Part, number: signal.Signals) -> None:
    for pid in pids(part):
        os.kill(pid, number)


async def opened(browser: PlaywrightBrowser, path: str = "/") -> str:
    async with browser.session(opening(path)) as session:
        await session.open()
        return (await session.state()).title


FAULTS = {
    "page killed": (Part.PAGE, signal.SIGKILL, PageFailed, "the page crashed"),
    "page stopped": (Part.PAGE, signal.SIGSTOP, PageFailed, "the page's process was stopped"),
    "browser killed": (Part.BROWSER, signal.SIGKILL, BrowserLost, "the browser ended while it was in use"),
    "browser stopped": (
        Part.BROWSER,
        signal.SIGSTOP,
        BrowserLost,
        "the browser was stopped while it was in use",
    ),
    "driver killed": (Part.DRIVER, signal.SIGKILL, BrowserLost, "the browser's driver ended while it was in use"),
    "driver stopped": (Part.DRIVER, signal.SIGSTOP, BrowserLost, "the browser's driver was stopped while it was in use"),
    "network killed": (Part.NETWORK, signal.SIGKILL, BrowserLost, "the browser's network process ended while it was in use"),
    "zygote killed": (Part.ZYGOTE, signal.SIGKILL, BrowserLost, "the browser's zygote ended while it was in use"),
}


async def test_an_episode_that_waits_for_its_place_while_the_browser_is_lost_has_lost_it_too() -> None:
    lost: list[BrowserLost] = []

    async def opens(browser: PlaywrightBrowser) -> None:
        with pytest.raises(BrowserLost) as raised:
            await opened(browser)
        lost.append(raised.value)

    async with (
        PlaywrightBrowser(BrowserConfig(), EnvConfig(http_pools=HttpPools(allocate=1))) as browser,
        browser.session(opening()) as session,
        anyio.create_task_group() as group,
    ):
        mine = [psutil.Process(pid) for pid in pids(Part.BROWSER)]
        async with browser._limits.allocate:
            group.start_soon(opens, browser)
            with anyio.fail_after(HANGS_S):
                while browser._limits.allocate.num_waiting == 0:
                    await anyio.lowlevel.checkpoint()
            strike(Part.BROWSER, signal.SIGKILL)
            await session.wait_failed()
            await anyio.to_thread.run_sync(partial(psutil.wait_procs, mine, timeout=HANGS_S))
            # Until nothing of the lost browser is left that a page could be opened in.
            await anyio.wait_all_tasks_blocked()
    assert [str(error) for error in lost] == ["the browser ended while it was in use"]


@pytest.mark.parametrize(("part", "number", "kind", "reason"), FAULTS.values(), ids=FAULTS)
async def test_a_fault_under_a_call_is_noticed_and_leaves_nothing(
    part: Part, number: signal.Signals, kind: type[BrowserError], reason: str
) -> None:
    others = set(psutil.Process().children(recursive=True))
    async with PlaywrightBrowser(BrowserConfig(), EnvConfig()) as browser:
        async with browser.session(opening("/heavy")) as session:
            await session.open()
            mine = set(psutil.Process().children(recursive=True)) - others
            (profile,) = {Path(part[len(PROFILE) :]) for each in mine for part in each.cmdline() if part.startswith(PROFILE)}
            assert profile.is_dir()
            errors: list[BrowserError] = []

            async def fails(session: PlaywrightSession = session) -> None:
                with pytest.raises(kind) as raised:
                    await session.perform(CLICK)
                errors.append(raised.value)

            async with anyio.create_task_group() as group:
                group.start_soon(fails)
                await anyio.wait_all_tasks_blocked()
                strike(part, number)
                with anyio.fail_after(NOTICED_S):
                    errors.append(await session.wait_failed())
        assert [(type(error), str(error)) for error in errors] == [(kind, reason)] * 2
        assert await opened(browser) == "home"
        assert browser.num_launches == (1 if kind is PageFailed else 2)
    _, alive = await anyio.to_thread.run_sync(partial(psutil.wait_procs, mine, timeout=HANGS_S))
    assert alive == []
    assert not profile.exists()


@pytest.mark.parametrize("fault", ["browser killed", "driver stopped"])
async def test_a_fault_while_a_context_is_made(browser: PlaywrightBrowser, fault: str) -> None:
    part, number, _, reason = FAULTS[fault]
    assert await opened(browser) == "home"

    async def enters() -> None:
        with pytest.raises(BrowserLost, match=reason):
            await opened(browser)

    with anyio.fail_after(NOTICED_S):
        async with anyio.create_task_group() as group:
            group.start_soon(enters)
            await anyio.lowlevel.checkpoint()
            strike(part, number)
    assert await opened(browser) == "home"
    assert browser.num_launches == 2


async def test_a_fault_under_a_capture(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening()) as session:
        await session.open()

        async def captures() -> None:
            while True:
                await session.view()

        async def fails() -> None:
            with pytest.raises(PageFailed, match="the page crashed"):
                await captures()

        with anyio.fail_after(NOTICED_S):
            async with anyio.create_task_group() as group:
                group.start_soon(fails)
                await anyio.wait_all_tasks_blocked()
                strike(Part.PAGE, signal.SIGKILL)
                reason = str(await session.wait_failed())
    assert reason == "the page crashed"
    assert await opened(browser) == "home"
    assert browser.num_launches == 1


async def test_a_page_that_died_between_two_episodes_is_not_used_again(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening(keeps_no_state=True)) as session:
        await session.open()
    strike(Part.PAGE, signal.SIGKILL)
    with anyio.fail_after(NOTICED_S):
        await session.wait_failed()
    async with browser.session(opening(keeps_no_state=True)) as session:
        await session.open()
        assert (await session.state()).title == "home"
    assert browser.num_launches == 1


@pytest.mark.parametrize("path", ["/buffers", "/heap", "/elements"])
async def test_a_page_that_eats_memory_is_ended_alone(
    browser: PlaywrightBrowser, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Far behind the bound, which may be seen late.
    monkeypatch.setattr("browser_workers.chromium.process.launch._HEAP_LIMIT", 10)
    async with browser.session(opening()) as bystander:
        await bystander.open()
        async with browser.session(opening(path)) as session:
            with suppress(PageFailed):
                await session.open()
            reason = str(await session.wait_failed())
        assert reason == f"the page used more than {BOUND_MB} MiB (browser_config.page_memory_mb) and was ended"
        assert (await bystander.state()).title == "home"
    assert await opened(browser) == "home"
    assert browser.num_launches == 1


async def test_a_browser_is_replaced_after_so_many_episodes() -> None:
    async with PlaywrightBrowser(BrowserConfig(max_episodes=2), EnvConfig()) as browser:
        for _ in range(3):
            assert await opened(browser) == "home"
        assert browser.num_launches == 2


async def test_a_browser_that_uses_too_much_memory_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.chromium.process.process_monitor._WEIGH_S", 0.0)
    async with PlaywrightBrowser(BrowserConfig(max_memory_mb=50), EnvConfig()) as browser:
        assert await opened(browser) == "home"
        retired = browser._instances.at[Place()]
        assert retired is not None
        with anyio.fail_after(HANGS_S):
            await retired.ended.wait()
        assert await opened(browser) == "home"
        assert browser.num_launches == 2


async def test_one_place_of_each_kind_is_enough() -> None:
    pools = HttpPools(**{field.name: 1 for field in fields(HttpPools)})
    async with PlaywrightBrowser(BrowserConfig(), EnvConfig(http_pools=pools)) as browser:

        async def plays() -> None:
            async with browser.session(opening()) as session:
                await session.open()
                await session.view()
                await session.perform(CLICK)
                assert await session.page_values(["document.title"]) == ("home",)

        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(plays)


async def test_a_machine_without_a_sandbox_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "chromium"
    script.write_text("#!/bin/sh\necho 'FATAL: No usable sandbox! Update your kernel' >&2\nexit 1\n")
    script.chmod(0o755)
    async with PlaywrightBrowser(BrowserConfig(executable=str(script)), EnvConfig()) as browser:
        with pytest.raises(ConfigurationError, match=r"sysctl -w .*seccomp"):
            await opened(browser)


async def test_a_page_that_dies_while_it_is_made_is_made_again(browser: PlaywrightBrowser) -> None:
    assert await opened(browser) == "home"
    killed: list[int] = []

    def kill_the_next() -> None:
        """As soon as it is there."""
        deadline = time.monotonic() + HANGS_S
        while time.monotonic() < deadline:
            for pid in pids(Part.PAGE):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    return

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, kill_the_next)
        with anyio.fail_after(HANGS_S):
            title, num_failed = "", 0
            while not (title and killed):
                try:
                    title = await opened(browser)
                except PageFailed:
                    title, num_failed = "", num_failed + 1
    assert (title, len(killed)) == ("home", 1)
    assert num_failed <= 1
