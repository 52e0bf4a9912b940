"""Bounds on browser operations, by tasks that wait for events."""

from dataclasses import fields

import anyio
import anyio.lowlevel
import pytest

from browser_workers.limits import Limit, Limits
from schemas.env_config import HttpPools
from schemas.messages import ActionKind

pytestmark = [pytest.mark.anyio]


class Operations:
    """Each goes on until it is told to end."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.begun: list[int] = []
        self.ends = [anyio.Event() for _ in range(6)]

    async def run(self, index: int) -> None:
        async with self.limit:
            self.begun.append(index)
            await self.ends[index].wait()


async def test_the_first_come_are_the_first_served() -> None:
    operations = Operations(Limit(2))
    async with anyio.create_task_group() as group:
        for index in range(4):
            group.start_soon(operations.run, index)
        await anyio.wait_all_tasks_blocked()
        assert operations.begun == [0, 1]
        assert (operations.limit.num_under_way, operations.limit.num_waiting) == (2, 2)
        for index, begun in enumerate([[0, 1, 2], [0, 1, 2, 3]]):
            operations.ends[index].set()
            await anyio.wait_all_tasks_blocked()
            assert operations.begun == begun
        group.cancel_scope.cancel()
    assert (operations.limit.num_under_way, operations.limit.num_waiting) == (0, 0)


async def test_who_gives_up_waiting_takes_no_place() -> None:
    operations = Operations(Limit(1))
    async with anyio.create_task_group() as group:
        group.start_soon(operations.run, 0)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0) as patience:
            await operations.run(1)
        assert patience.cancelled_caught
        group.start_soon(operations.run, 2)
        await anyio.wait_all_tasks_blocked()
        operations.ends[0].set()
        await anyio.wait_all_tasks_blocked()
        assert operations.begun == [0, 2]
        operations.ends[2].set()


async def test_a_place_is_free_again_after_a_failure_and_after_a_deadline() -> None:
    limit = Limit(1)
    with pytest.raises(LookupError):
        async with limit:
            raise LookupError
    with anyio.move_on_after(0):
        async with limit:
            await anyio.sleep_forever()
    assert limit.num_under_way == 0


async def test_the_wait_is_not_part_of_the_operation() -> None:
    limit, begun = Limit(1), anyio.Event()

    async def operation() -> None:
        async with limit:
            begun.set()

    async with anyio.create_task_group() as group:
        async with limit:
            group.start_soon(operation)
            await anyio.wait_all_tasks_blocked()
            assert limit.num_waiting == 1
            assert not begun.is_set(), "whatever bounds the operation's time begins with it"
        await begun.wait()


@pytest.mark.parametrize("name", [field.name for field in fields(HttpPools)])
async def test_each_kind_has_the_size_that_is_configured(name: str) -> None:
    limit = getattr(Limits(HttpPools(**{name: 1})), name)
    async with limit:
        assert limit.num_under_way == 1
        with anyio.move_on_after(0) as patience:
            async with limit:
                pass
        assert patience.cancelled_caught


async def test_the_places_that_actions_need() -> None:
    limits = Limits(HttpPools())
    for kind in ActionKind:
        async with limits.action(kind):
            taken = limits.navigate.num_under_way, limits.execute.num_under_way
        match kind:
            case ActionKind.NAVIGATE | ActionKind.GO_BACK:
                assert taken == (1, 0)
            case ActionKind.WAIT | ActionKind.ANSWER:
                assert taken == (0, 0)
            case _:
                assert taken == (0, 1)
