"""Presence: a worker says every two seconds what it is doing; a worker that stops saying so ages out by itself."""

import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import structlog

from bus.background import background
from bus.backpressure import counted
from bus.draining import Drain
from bus.ports import Bus
from bus.skipping import skipped
from bus.subjects import Subjects
from schemas.errors import BusError
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role
from schemas.ranges import is_real

HEARTBEAT_S = 2.0
_STATM = Path("/proc/self/statm")
_MIB = 1024 * 1024
_OVER = "the run is over"
_log = structlog.get_logger()


@dataclass
class Status:
    """What the next heartbeat says: the worker writes, nobody reads back; and whether the worker is to leave."""

    role: Role
    worker: WorkerId
    state: str = "starting"
    note: str = ""
    run_over: bool = False
    """The feeder says that nothing is left to do."""
    metrics: dict[str, float] = field(default_factory=dict)
    awaited: Counter[str] = field(default_factory=Counter)
    """Writers that wait for room, by stream; `bus.backpressure` counts them."""
    num_unexpected: int = 0
    """Errors that nobody foresaw; `bus.bulkhead` counts them."""
    drain: Drain = field(default_factory=Drain)
    """Where the worker is told to leave, and reads it."""

    @property
    def _told(self) -> dict[str, float]:
        """Without what is no number, as a loss that diverged: a worker is told of all the same."""
        counted = {"unexpected": self.num_unexpected, "records_skipped": skipped.count}
        told = {name: value for name, value in self.metrics.items() if is_real(value)}
        return told | {name: float(number) for name, number in counted.items() if number}

    def heartbeat(self, now: float) -> Heartbeat:
        full = sorted(stream for stream, num_writers in self.awaited.items() if num_writers)
        note = f"waits for room in {', '.join(full)}" if full else self.note or (_OVER if self.run_over else "")
        state = "draining" if self.drain.requested else self.state
        return Heartbeat(
            role=self.role, worker=self.worker, state=state, at=now, metrics=self._told, note=note, skipped=skipped.newest
        )


@asynccontextmanager
async def presence(
    bus: Bus, subjects: Subjects, role: Role, worker: WorkerId, measure: Callable[[], dict[str, float]] = dict
) -> AsyncIterator[Status]:
    """Sends heartbeats while the context is open; each says what `measure` finds, too."""
    status = Status(role, worker)
    async with background(partial(_beat, bus, subjects, status, measure)):
        with counted(status.awaited):
            yield status


def process_metrics() -> dict[str, float]:
    """What this process uses itself: resident memory (units of 2**20 bytes), and processor seconds so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found = {"cpu_s": usage.ru_utime + usage.ru_stime}
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return found  # not Linux
    return found | {"memory_mib": pages * resource.getpagesize() / _MIB}


async def _beat(bus: Bus, subjects: Subjects, status: Status, measure: Callable[[], dict[str, float]]) -> None:
    subject = subjects.heartbeat(status.role, status.worker)
    while True:
        try:
            status.metrics.update(process_metrics() | measure())
            await bus.tell(subject, status.heartbeat(time.time()))
        except BusError as error:
            _log.warning("heartbeat_unsent", worker=status.worker, error=str(error))
        await anyio.sleep(HEARTBEAT_S)
