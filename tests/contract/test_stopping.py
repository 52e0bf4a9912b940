"""A worker that stops hands back what it holds: somebody else has it long before its ack wait."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from bus.ports import Bus, Delivery, Inbox
from bus.settlement import settle
from bus.topology import trajectory_queue
from schemas.errors import ConfigurationError
from tests.builders import WORKER, task, trajectory
from tests.contract.backends import CONFIG, RUBRIC, SUBJECTS, Backend
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
QUEUE = trajectory_queue(SUBJECTS, CONFIG, RUBRIC)
assert QUEUE.ack_wait_s > 10 * HANGS_S
NUM_SLOTS = 8


async def queue_one(bus: Bus, name: str = "a") -> None:
    ended = trajectory(task(name))
    await bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(ended.task.split, ended.episode), ended)


async def soon(inbox: Inbox) -> Delivery:
    with anyio.fail_after(HANGS_S):
        return await anext(aiter(inbox))


class Slots:
    """A worker with one delivery in hand and its other slots idle."""

    def __init__(self, bus: Bus, group: TaskGroup) -> None:
        self._bus = bus
        self._group = group
        self._fails = anyio.Event()
        self.holds = anyio.Event()

    async def serve(self, inbox: Inbox) -> None:
        async for delivery in inbox:
            async with settle(self._bus, delivery, WORKER):
                self.holds.set()
                await self._fails.wait()
                raise ConfigurationError("no key")

    def stop(self, how: str) -> None:
        if how == "cancelled":
            self._group.cancel_scope.cancel()
        else:
            self._fails.set()


@asynccontextmanager
async def holding_one(bus: Bus) -> AsyncIterator[Slots]:
    try:
        async with bus.work(QUEUE, prefetch=0) as inbox, anyio.create_task_group() as group:
            slots = Slots(bus, group)
            for _ in range(NUM_SLOTS):
                group.start_soon(slots.serve, inbox)
            await queue_one(bus)
            with anyio.fail_after(HANGS_S):
                await slots.holds.wait()
            yield slots
    except* ConfigurationError:
        pass


async def num_waiting(bus: Bus) -> int:
    depth = await bus.depth(QUEUE)
    assert depth is not None
    return depth.num_waiting


@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_another_worker_that_waits_gets_it(backend: Backend, how: str) -> None:
    async with backend.other.work(QUEUE, prefetch=0) as there, anyio.create_task_group() as waiting:
        async with holding_one(backend.bus) as slots:
            before = await num_waiting(backend.other)
            received = list[Delivery]()

            async def wait() -> None:
                received.append(await anext(aiter(there)))
                await received[0].ack()

            waiting.start_soon(wait)
            with anyio.fail_after(HANGS_S):
                while await num_waiting(backend.other) == before:
                    await anyio.lowlevel.checkpoint()
            slots.stop(how)
        waiting.cancel_scope.deadline = anyio.current_time() + HANGS_S
    assert [delivery.seq for delivery in received] == [1]


@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_the_only_worker_started_again_gets_it(backend: Backend, how: str) -> None:
    async with holding_one(backend.bus) as slots:
        slots.stop(how)
    async with backend.bus.work(QUEUE, prefetch=0) as inbox:
        again = await soon(inbox)
        assert (again.seq, again.num_delivered > 1) == (1, True)
        await again.ack()


async def test_nothing_more_goes_to_a_worker_that_has_left(backend: Backend) -> None:
    """Its connection may stay: what it had asked for there counts no more."""
    async with backend.bus.work(QUEUE, prefetch=0) as inbox, anyio.create_task_group() as group:
        group.start_soon(soon, inbox)
        with anyio.fail_after(HANGS_S):
            while not await num_waiting(backend.other):
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    await queue_one(backend.bus)
    async with backend.other.work(QUEUE, prefetch=0) as there:
        assert (await soon(there)).num_delivered == 1
