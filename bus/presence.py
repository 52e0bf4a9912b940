"""Presence: a worker says every two seconds what it is doing; a worker that stops saying so ages out by itself."""

import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
import structlog

from bus.companions import companions
from bus.ports import Bus
from bus.room import counted
from bus.subjects import Subjects
from schemas.errors import BusError
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role

HEARTBEAT_S = 2.0
_log = structlog.get_logger()


@dataclass
class Status:
    """What the next heartbeat says; the worker writes, nobody reads back."""

    role: Role
    worker: WorkerId
    state: str = "starting"
    note: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    awaited: Counter[str] = field(default_factory=Counter)
    """Writers that wait for room, by stream; `bus.room` counts them."""

    def heartbeat(self, now: float) -> Heartbeat:
        full = sorted(stream for stream, num_writers in self.awaited.items() if num_writers)
        note = f"waits for room in {', '.join(full)}" if full else self.note
        return Heartbeat(role=self.role, worker=self.worker, state=self.state, at=now, metrics=dict(self.metrics), note=note)


@asynccontextmanager
async def presence(bus: Bus, subjects: Subjects, role: Role, worker: WorkerId) -> AsyncIterator[Status]:
    """Sends heartbeats while the context is open."""
    status = Status(role, worker)
    async with companions(partial(_beat, bus, subjects, status)):
        with counted(status.awaited):
            yield status


async def _beat(bus: Bus, subjects: Subjects, status: Status) -> None:
    subject = subjects.heartbeat(status.role, status.worker)
    while True:
        try:
            await bus.tell(subject, status.heartbeat(time.time()))
        except BusError as error:
            _log.warning("heartbeat_unsent", worker=status.worker, error=str(error))
        await anyio.sleep(HEARTBEAT_S)
