"""Asks the server how queues, streams and store stand, every two seconds, and how long it takes to say so."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import anyio

from bus.ports import Bus, QueueDepth, StreamState, WorkQueue
from bus.server_time import ServerClock
from bus.subjects import Subjects
from bus.topology import step_queue, streams, task_queue, trajectory_queue
from ops.monitor.passing import PassOver, passing_over
from ops.monitor.queues import QueueState
from ops.monitor.state import Disk, MonitorState
from schemas.bus_config import BusConfig
from schemas.errors import BusError
from schemas.messages import Role, Split
from schemas.monitor_config import MonitorConfig

_MEASURE_S = 2.0
_STREAMS_EVERY = 5
"""Measurements between two looks at every stream: sizes change slowly."""


@dataclass(frozen=True)
class Measuring:
    """Writes what it finds into `state`."""

    bus: Bus
    subjects: Subjects
    config: BusConfig
    thresholds: MonitorConfig
    state: MonitorState
    disk: Path | None
    """Folder of the server's store, where it is on this machine."""
    measured: anyio.Event
    now: ServerClock
    pass_over: PassOver

    async def run(self) -> None:
        queues = self._queues()
        for queue, role in queues:
            self.state.queues[queue.name] = QueueState(queue.name, queue.stream, role)
        count = 0
        while True:
            began = time.monotonic()
            try:
                await self._measure([queue for queue, _ in queues], whole=count % _STREAMS_EVERY == 0)
            except BusError as error:
                self.state.server.error = str(error)
            else:
                count += 1
                self.measured.set()
            await anyio.sleep(max(0.1, _MEASURE_S - (time.monotonic() - began)))

    def _queues(self) -> list[tuple[WorkQueue, Role]]:
        names, config = self.subjects, self.config
        return [
            *((task_queue(names, config, split), Role.BROWSER) for split in Split),
            *((step_queue(names, config, split), Role.POLICY) for split in Split),
            *((trajectory_queue(names, config, rubric), Role.JUDGE) for rubric in config.rubrics),
        ]

    async def _measure(self, queues: list[WorkQueue], *, whole: bool) -> None:
        """Raises `BusError`. What was measured before it stays."""
        if whole:
            for spec in streams(self.subjects, self.config):
                with passing_over(self.pass_over, spec.name):
                    await self._standing(spec.name)
            self.state.store = await self.bus.store_state()
            self.state.disk = None if self.disk is None else _disk(self.disk)
        for queue in queues:
            with passing_over(self.pass_over, queue.name):
                await self._depth(queue)

    async def _depth(self, queue: WorkQueue) -> None:
        began = time.monotonic()
        depth = await self.bus.depth(queue)
        self.state.server.answered(time.monotonic() - began, self.now())
        if depth is not None:
            oldest_s = await self._oldest(queue, depth)
            now = self.now()
            self.state.queues[queue.name].note(depth, oldest_s=oldest_s, now=now, window_s=self.thresholds.queue_growth_s)

    async def _standing(self, stream: str) -> StreamState:
        found = self.state.streams[stream] = await self.bus.stream_state(stream)
        self.now.heard(found.now_s)
        return found

    async def _oldest(self, queue: WorkQueue, depth: QueueDepth) -> float | None:
        """Age of the oldest record that is not acknowledged."""
        if not depth.num_pending and not depth.num_in_flight:
            return None
        if queue.stream != self.subjects.trajectories:
            # A work queue's stream holds nothing else; its other split counts too.
            began_s = (await self._standing(queue.stream)).oldest_s
        else:
            stored = await self.bus.get_bytes(queue.stream, depth.acked_seq + 1)
            began_s = stored.time_s if stored is not None else 0.0
        return max(0.0, self.now() - began_s) if began_s else None


def _disk(folder: Path) -> Disk | None:
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return Disk(str(folder), usage.total, usage.free)
