"""A browser that does not answer: it is relieved of its busiest page before all pages are lost."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from subprocess import PIPE
from typing import Any, cast

import anyio
import anyio.to_thread
import psutil
import pytest
from playwright.async_api import Browser
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.process import launch
from browser_workers.chromium.process.launch import Chromium
from browser_workers.chromium.process.process_monitor import busiest
from browser_workers.chromium.process.processes import Part, ProcessTree, Seen, Turns
from schemas.errors import BrowserError, BrowserLost, PageFailed

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_RELIEF_S", 0.05)
    monkeypatch.setattr(launch, "_ANSWER_S", 0.1)


@dataclass
class Protocol:
    """Answers while `free` is set."""

    free: anyio.Event = field(default_factory=anyio.Event)
    asked: Callable[[], None] = lambda: None
    num_asked: int = 0

    async def send(self, method: str) -> dict[str, str]:
        self.num_asked += 1
        self.asked()
        await self.free.wait()
        return {"product": method}


def running(protocol: Protocol, relieve: Callable[[], None] = lambda: None) -> Chromium:
    return Chromium(cast(Browser, None), cast(Any, protocol), relieve=relieve)


async def told(chromium: Chromium, number: int = 1) -> list[BrowserError]:
    found: list[BrowserError] = []

    async def ask() -> None:
        found.append(await chromium.why_gone("the page is gone"))

    async with anyio.create_task_group() as group:
        for _ in range(number):
            group.start_soon(ask)
    return found


async def test_one_page_is_ended_for_all_who_ask() -> None:
    protocol, relieved = Protocol(), []

    def relieve() -> None:
        relieved.append(1)
        protocol.free.set()

    found = await told(running(protocol, relieve), 5)
    assert [(type(each), str(each)) for each in found] == [(PageFailed, "the page is gone")] * 5
    assert relieved == [1]


async def test_one_that_answers_is_not_relieved() -> None:
    protocol, relieved = Protocol(), []
    protocol.free.set()
    (found,) = await told(running(protocol, lambda: relieved.append(1)))
    assert (type(found), relieved) == (PageFailed, [])


async def test_one_that_never_answers_is_lost() -> None:
    relieved: list[int] = []
    chromium = running(Protocol(), lambda: relieved.append(1))
    found = await told(chromium, 3)
    assert {type(each) for each in found} == {BrowserLost}
    assert (relieved, chromium.lost.is_set()) == ([1], True)


async def test_one_that_ended_is_lost_at_once() -> None:
    def ended() -> None:
        raise PlaywrightError("Target closed")

    relieved: list[int] = []
    (found,) = await told(running(Protocol(asked=ended), lambda: relieved.append(1)))
    assert (type(found), str(found), relieved) == (BrowserLost, "the browser ended while it was in use", [])


async def test_a_process_that_was_stopped_itself_asks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its deadlines have passed when it goes on; nobody had the time to answer."""
    monkeypatch.setattr(launch, "_HELD_UP_S", 0.2)
    protocol, relieved = Protocol(), []

    def asked() -> None:
        if protocol.num_asked == 1:
            time.sleep(0.3)
        else:
            protocol.free.set()

    protocol.asked = asked
    (found,) = await told(running(protocol, lambda: relieved.append(1)))
    assert (type(found), relieved, protocol.num_asked) == (PageFailed, [], 2)


class Crowded:
    """What is seen of a browser's processes that wait for a CPU all the time."""

    def turns(self) -> Turns:
        return Turns(3.0, time.monotonic())


async def test_a_browser_that_gets_no_cpu_is_asked_anew() -> None:
    """None of its pages is to blame."""
    protocol, relieved = Protocol(), []

    def asked() -> None:
        if protocol.num_asked == 3:
            protocol.free.set()

    protocol.asked = asked
    chromium = running(protocol, lambda: relieved.append(1))
    chromium.processes = cast(ProcessTree, Crowded())
    (found,) = await told(chromium)
    assert (type(found), relieved, protocol.num_asked) == (PageFailed, [], 3)


@pytest.mark.parametrize(
    ("ran_s", "queued_s", "starved"),
    [(0.2, 3.5, True), (0.2, 1.9, False), (1.2, 3.5, False), (0.0, 0.0, False), (2.0, 4.0, False)],
)
def test_starved_is_who_could_have_run_and_did_not(ran_s: float, queued_s: float, starved: bool) -> None:
    """In four seconds."""
    assert Turns(10.0 + ran_s, 20.0 + queued_s).starved_since(Turns(10.0, 20.0), 4.0) is starved


@contextmanager
def driver(code: str) -> Iterator[psutil.Popen]:
    """One that has started, and does what `code` says then."""
    with psutil.Popen([sys.executable, "-c", f"print(flush=True)\n{code}"], stdin=PIPE, stdout=PIPE) as process:
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def test_a_driver_that_runs_is_seen_to() -> None:
    """By the system's own figures."""
    with driver("while True: pass") as process:
        tree = ProcessTree(process)
        before = tree.turns().ran_s - time.thread_time()
        while tree.turns().ran_s - time.thread_time() < before + 0.1:
            assert process.is_running()
            time.sleep(0.01)


async def test_whoever_hears_it_is_seen_to_run() -> None:
    """What that thread has yet to read comes before any answer."""
    with driver("input()") as process:
        tree = ProcessTree(process)
        before = tree.turns()
        until = time.thread_time() + 0.3
        while time.thread_time() < until:
            pass
        after = await anyio.to_thread.run_sync(tree.turns)
        assert after.ran_s - before.ran_s == pytest.approx(0.3, abs=0.15)


def seen(cpu_s: float, part: Part = Part.PAGE) -> Seen:
    return Seen(part, 100.0, cpu_s=cpu_s)


def test_the_busiest_is_the_page_that_used_most_since() -> None:
    before = {1: seen(9.0, Part.BROWSER), 2: seen(50.0), 3: seen(1.0), 4: seen(1.0)}
    now = {1: seen(14.0, Part.BROWSER), 2: seen(50.05), 3: seen(3.0), 4: seen(2.0), 5: seen(1.5)}
    assert busiest(before, now) == 3
    assert busiest(before, {5: seen(0.6), 4: seen(1.5)}) == 5, "a new one"


def test_where_no_page_did_anything_none_is_ended() -> None:
    before = {1: seen(9.0, Part.BROWSER), 2: seen(50.0)}
    assert busiest(before, {1: seen(19.0, Part.BROWSER), 2: seen(50.05)}) is None
    assert busiest({}, {}) is None
