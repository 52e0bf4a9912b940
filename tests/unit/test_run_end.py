"""Workers that wait are told that the run is over, whenever they come, and that it goes on."""

from collections.abc import Callable
from functools import partial

import anyio
import pytest

from bus.background import background
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from ops.roles.run_end import tell_when_over
from schemas.errors import BusUnavailable
from schemas.messages import FeederMemory, Role
from tests.builders import WORKER
from tests.deadlines import HANGS_S
from tests.support.training.trainer_world import SUBJECTS

pytestmark = pytest.mark.anyio


async def remembers(bus: MemoryBus, *, finished: bool) -> None:
    await bus.append(SUBJECTS.feeding, SUBJECTS.feeder_memory, FeederMemory(holder="f", finished=finished))


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(HANGS_S):
        while not holds():  # noqa: ASYNC110 - a heartbeat has no event
            await anyio.sleep(0.001)


async def test_a_worker_that_waits_says_so_as_long_as_it_is_true() -> None:
    bus, status = MemoryBus(SUBJECTS), Status(Role.BROWSER, WORKER, state="waiting")
    async with background(partial(tell_when_over, WorkerContext(bus, SUBJECTS, status), look_s=0.001)):
        await remembers(bus, finished=False)
        await anyio.wait_all_tasks_blocked()
        assert status.heartbeat(0.0).note == ""
        await remembers(bus, finished=True)
        await until(lambda: status.heartbeat(0.0).note == "the run is over")
        status.note = "loads version 3"
        assert status.heartbeat(0.0).note == "loads version 3"
        status.note = ""
        await remembers(bus, finished=False)
        await until(lambda: status.heartbeat(0.0).note == "")


async def test_a_bus_that_is_away_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, status = MemoryBus(SUBJECTS), Status(Role.JUDGE, WORKER)
    await remembers(bus, finished=True)
    async with background(partial(tell_when_over, WorkerContext(bus, SUBJECTS, status), look_s=0.001)):
        await until(lambda: status.run_over)
        asked = anyio.Event()

        async def away(stream: str, subject_filter: str) -> None:
            asked.set()
            raise BusUnavailable("the server is away")

        monkeypatch.setattr(bus, "last", away)
        with anyio.fail_after(HANGS_S):
            await asked.wait()
        await anyio.wait_all_tasks_blocked()
        assert status.run_over
