"""Several items worked on at once, in a bounded number of serial loops."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

from bus.background import first_of

T = TypeVar("T")


async def side_by_side(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, num_loops: int) -> None:
    """Returns when every item is done. The first failure ends the others and comes out as it is, not inside a group."""
    remaining = iter(items)

    async def loop() -> None:
        for item in remaining:
            await work(item)

    try:
        async with anyio.create_task_group() as group:
            for _ in range(num_loops):
                group.start_soon(loop)
    except BaseExceptionGroup as failures:
        first = first_of(failures)
        raise first from first.__cause__
