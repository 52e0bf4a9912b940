"""A reader that is cancelled as its record comes has that record when it asks again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bus.memory import MemoryBus
from bus.ports import Record
from tests.builders import task
from tests.contract.backends import SUBJECTS
from tests.contract.test_consumer import opened
from tests.deadlines import HANGS_S
from tests.support.bus.played import play

pytestmark = pytest.mark.anyio


class TellingBus(MemoryBus):
    """Says when a record was handed over, in the same turn of the event loop."""

    handed_over: Callable[[], object] = staticmethod(lambda: None)

    @asynccontextmanager
    async def tail(self, stream: str, subject_filter: str, **where: Any) -> AsyncIterator[AsyncIterator[Record]]:
        async def telling(records: AsyncIterator[Record]) -> AsyncIterator[Record]:
            async for record in records:
                yield record
                self.handed_over()

        async with super().tail(stream, subject_filter, **where) as records:
            yield telling(records)


async def test_a_record_that_comes_as_its_reader_is_cancelled_is_the_next_one() -> None:
    bus = TellingBus(SUBJECTS)
    tasks = [task(name) for name in "abc"]
    async with opened(bus) as run:
        items = run.trajectories(durable="mine")
        await play(bus, tasks[0])
        assert (await anext(items)).message.task == tasks[0]

        reader = asyncio.ensure_future(items.__anext__())
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        bus.handed_over = reader.cancel
        await play(bus, tasks[1])
        with pytest.raises(asyncio.CancelledError):
            await reader

        bus.handed_over = lambda: None
        await play(bus, tasks[2])
        with anyio.fail_after(HANGS_S):
            for expected in tasks[1:]:
                assert (await anext(items)).message.task == expected
