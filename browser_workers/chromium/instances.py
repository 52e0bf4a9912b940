"""The browsers that serve a worker, one at each place, replaced when they die or grow old."""

from collections import defaultdict

import anyio
import structlog
from anyio.abc import TaskGroup, TaskStatus

from browser_workers.chromium.instance import Instance
from browser_workers.chromium.process.retirement import Lifetime
from browser_workers.chromium.process.source import Source
from browser_workers.providers.leases import Lease
from browser_workers.providers.provider import Place

START_S = 30.0


class Instances:
    def __init__(self, source: Source, lifetime: Lifetime, *, page_memory_mb: int) -> None:
        self._source = source
        self._lifetime = lifetime
        self._page_memory_mb = page_memory_mb
        self.at: dict[Place, Instance] = {}
        """The newest of each place."""
        self._locks: defaultdict[Place, anyio.Lock] = defaultdict(anyio.Lock)
        self.num_launches = 0

    async def ready(self, group: TaskGroup, lease: Lease) -> Instance:
        """One that takes the episode, running in `group`. Raises `BrowserLost` when it does not come up."""
        place = lease.place
        if place.is_session:
            instance: Instance = await group.start(self._run, place)
            instance.group.start_soon(_until_ended, lease, instance)
            return instance
        async with self._locks[place]:
            if (known := self.at.get(place)) is not None:
                if known.usable:
                    return known
                known.end_if_done()
            self.at[place] = await group.start(self._run, place)
            return self.at[place]

    async def _run(self, place: Place, *, task_status: TaskStatus[Instance]) -> None:
        """Raises `BrowserLost` into the caller of `start` when Chromium does not come up."""
        self.num_launches += 1
        # The log lines of a browser are not those of the episode that happened to need it first.
        structlog.contextvars.clear_contextvars()
        async with (
            self._source(place, timeout_s=START_S) as running,
            anyio.create_task_group() as group,
        ):
            instance = Instance(running, group, self._lifetime, page_memory_mb=self._page_memory_mb)
            task_status.started(instance)
            group.start_soon(instance.watch)
            await instance.ended.wait()
            group.cancel_scope.cancel()


async def _until_ended(lease: Lease, instance: Instance) -> None:
    """What its provider says of a session may come before its connection is known to be gone."""
    await lease.ended.wait()
    instance.running.lose(lease.why_ended)
