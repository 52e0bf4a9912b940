"""The two buses that the contract is checked on, each fresh for every test."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bus.jetstream import connect, create_topology
from bus.memory import MemoryBus
from bus.ports import Bus
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from schemas.config import BusConfig
from tests.builders import RUN

SUBJECTS = Subjects(RUN)
CONFIG = BusConfig(run=RUN, task_ack_wait_s=1.0, step_ack_wait_s=1.0)


class StoreBytes(Protocol):
    async def __call__(self, stream: str, subject: str, data: bytes) -> None: ...


@dataclass(frozen=True)
class Backend:
    """One bus, a second connection to it, and a way to put bytes on it that no message encodes to."""

    bus: Bus
    other: Bus
    store_bytes: StoreBytes


@asynccontextmanager
async def memory(_: Path) -> AsyncIterator[Backend]:
    bus = MemoryBus(SUBJECTS, CONFIG)

    async def store_bytes(stream: str, subject: str, data: bytes) -> None:
        bus.store(stream, subject, data)

    yield Backend(bus, bus, store_bytes)


@asynccontextmanager
async def jetstream(folder: Path) -> AsyncIterator[Backend]:
    async with (
        nats_server(folder) as address,
        connect(address, SUBJECTS, CONFIG, name="contract") as bus,
        connect(address, SUBJECTS, CONFIG, name="contract-2") as other,
    ):
        await create_topology(bus, streams(SUBJECTS, CONFIG), shared_queues(SUBJECTS, CONFIG, CONFIG.rubrics))

        async def store_bytes(stream: str, subject: str, data: bytes) -> None:
            await bus.append_bytes(stream, subject, data)

        yield Backend(bus, other, store_bytes)


BACKENDS: dict[str, Callable[[Path], AbstractAsyncContextManager[Backend]]] = {"memory": memory, "jetstream": jetstream}
