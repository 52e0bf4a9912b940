"""The two buses that the contract is checked on, each fresh for every test."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from bus.address import ServerAddress
from bus.background import background
from bus.jetstream import connect, create_topology
from bus.memory import MemoryBus
from bus.ports import Bus, WorkQueue
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from schemas.bus_config import BusConfig
from tests.builders import RUN
from tests.deadlines import HANGS_S

SUBJECTS = Subjects(RUN)
CONFIG = BusConfig(run=RUN, task_ack_wait_s=1.0, step_ack_wait_s=1.0, judge_ack_wait_s=36_000.0, max_queued_tasks=30)
RUBRIC = "contract_v1"
QUEUES = shared_queues(SUBJECTS, CONFIG, (RUBRIC,))


@dataclass(frozen=True)
class Backend:
    """One bus, a second connection to it, and a third one that tries nothing twice."""

    bus: Bus
    other: Bus
    impatient: Bus


@asynccontextmanager
async def memory(_: Path) -> AsyncIterator[Backend]:
    bus = MemoryBus(SUBJECTS, CONFIG, (RUBRIC,))
    yield Backend(bus, bus, bus)


@asynccontextmanager
async def trying_once(address: ServerAddress) -> AsyncIterator[Bus]:
    config = replace(CONFIG, request_timeout_s=HANGS_S)
    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as once:
            once.setattr("bus.jetstream.bus._LIMITS", 1e-6)
            bus = await stack.enter_async_context(connect(address, SUBJECTS, config, name="contract-3"))
        yield bus


@asynccontextmanager
async def jetstream(folder: Path) -> AsyncIterator[Backend]:
    async with (
        nats_server(folder) as address,
        connect(address, SUBJECTS, CONFIG, name="contract") as bus,
        connect(address, SUBJECTS, CONFIG, name="contract-2") as other,
        trying_once(address) as impatient,
    ):
        await create_topology(bus, streams(SUBJECTS, CONFIG), QUEUES)
        yield Backend(bus, other, impatient)


BACKENDS: dict[str, Callable[[Path], AbstractAsyncContextManager[Backend]]] = {"memory": memory, "jetstream": jetstream}


@dataclass
class Stall:
    """How long whoever asks a bus was kept waiting at the longest: this process, its server or both had no turn."""

    longest_s: float = 0.0

    def spoils(self, queue: WorkQueue) -> bool:
        """Whether a delivery that was kept all the while may have come again."""
        # It is renewed every third of that, and two stalls may stand beside one another.
        return self.longest_s > queue.ack_wait_s / 4


@asynccontextmanager
async def watched(bus: Bus, queue: WorkQueue) -> AsyncIterator[Stall]:
    """Asks all the while."""
    stall = Stall()

    async def look() -> None:
        asked_at = time.monotonic()
        while True:
            await anyio.sleep(0.01)
            await bus.depth(queue)
            stall.longest_s = max(stall.longest_s, time.monotonic() - asked_at)
            asked_at = time.monotonic()

    async with background(look):
        yield stall
        # What holds up the end counts as well.
        await bus.depth(queue)
