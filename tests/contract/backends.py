"""The two buses that the contract is checked on, each fresh for every test."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bus.jetstream import connect, create_topology
from bus.memory import MemoryBus
from bus.ports import Bus
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from schemas.bus_config import BusConfig
from tests.builders import RUN

SUBJECTS = Subjects(RUN)
CONFIG = BusConfig(run=RUN, task_ack_wait_s=1.0, step_ack_wait_s=1.0, judge_ack_wait_s=36_000.0, max_queued_tasks=30)
RUBRIC = "contract_v1"
QUEUES = shared_queues(SUBJECTS, CONFIG, (RUBRIC,))


@dataclass(frozen=True)
class Backend:
    """One bus, a second connection to it, and a third one that waits for nothing."""

    bus: Bus
    other: Bus
    impatient: Bus


@asynccontextmanager
async def memory(_: Path) -> AsyncIterator[Backend]:
    bus = MemoryBus(SUBJECTS, CONFIG, (RUBRIC,))
    yield Backend(bus, bus, bus)


@asynccontextmanager
async def jetstream(folder: Path) -> AsyncIterator[Backend]:
    async with (
        nats_server(folder) as address,
        connect(address, SUBJECTS, CONFIG, name="contract") as bus,
        connect(address, SUBJECTS, CONFIG, name="contract-2") as other,
        connect(address, SUBJECTS, replace(CONFIG, request_timeout_s=0.2), name="contract-3") as impatient,
    ):
        await create_topology(bus, streams(SUBJECTS, CONFIG), QUEUES)
        yield Backend(bus, other, impatient)


BACKENDS: dict[str, Callable[[Path], AbstractAsyncContextManager[Backend]]] = {"memory": memory, "jetstream": jetstream}
