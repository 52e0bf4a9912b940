"""Playwright's driver: however far its start came and however it ends, its process and its pipes end with it."""

import asyncio
import gc
import warnings
from contextlib import suppress

import psutil
import pytest

from browser_workers.chromium.process import driver
from browser_workers.chromium.process.executable import find_chromium
from browser_workers.chromium.process.launch import chromium
from schemas.errors import BrowserLost
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.integration


def children() -> list[psutil.Process]:
    """What this process has started and not waited for."""
    return psutil.Process().children(recursive=True)


async def start(patience_s: float) -> None:
    async with chromium(find_chromium(), (160, 210), timeout_s=patience_s):
        pass


@pytest.mark.parametrize("patience_s", [0.0, 0.02, 0.05, 0.1, 0.2, 0.3])
def test_a_start_that_is_given_up_leaves_no_process_to_nobody(patience_s: float) -> None:
    """On a machine that is slow enough, any moment of a start can be the last one."""
    before = set(children())

    async def given_up() -> None:
        with suppress(BrowserLost):
            await start(patience_s)
        assert set(children()) <= before

    asyncio.run(given_up())


def test_a_start_that_is_given_up_while_the_driver_is_silent_leaves_no_error_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio tells of such an error at any later moment, to whoever is at work then."""
    monkeypatch.setattr(driver, "_CLOSING_S", 0.0)
    monkeypatch.setattr(driver, "_REAPED_S", HANGS_S)
    before, told = set(children()), list[str]()

    async def stops_it() -> None:
        while not (started := set(children()) - before):  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0)
        for process in started:
            with suppress(psutil.Error):
                process.suspend()

    async def given_up() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(str(context)))
        stopping = asyncio.create_task(stops_it())
        with suppress(BrowserLost):
            await start(1.0)
        stopping.cancel()  # on a machine on which nothing was started in time
        await asyncio.gather(stopping, return_exceptions=True)
        del stopping
        gc.collect()

    asyncio.run(given_up())
    assert told == []


@pytest.mark.parametrize("hangs", [False, True])
def test_a_driver_that_does_not_end_by_itself_is_known_to_have_ended(monkeypatch: pytest.MonkeyPatch, hangs: bool) -> None:
    """Killed is not over: until its end is known, its pipes are open, and a loop that closes before then leaves them so."""
    monkeypatch.setattr(driver, "_CLOSING_S", 0.0)
    monkeypatch.setattr(driver, "_REAPED_S", HANGS_S)

    async def ends() -> None:
        async with chromium(find_chromium(), (160, 210), timeout_s=HANGS_S) as running:
            if hangs and running.processes is not None:
                for pid in running.processes.look(full=True):
                    psutil.Process(pid).suspend()
        # Whatever still reads from it would be cut off with the loop.
        assert asyncio.all_tasks() == {asyncio.current_task()}

    gc.collect()  # what others left is theirs
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(ends())
        gc.collect()
    assert [str(each.message) for each in told] == []
