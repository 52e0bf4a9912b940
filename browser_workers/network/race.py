"""Tries several ways to one end: the next one begins a quarter of a second behind the last, or at once where that has failed,
and what the first brings is taken (Happy Eyeballs, RFC 8305).

Invariant: no try outlives the race.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

_NEXT_S = 0.25
"""The RFC's own (section 5)."""
T = TypeVar("T")


async def first(tries: Sequence[Callable[[], Awaitable[T | None]]]) -> T | None:
    """What the first of them brings, the others cancelled; None: all have ended and brought nothing."""
    brought: list[T] = []
    async with anyio.create_task_group() as group:

        async def run(one: Callable[[], Awaitable[T | None]], has_failed: anyio.Event) -> None:
            found = await one()
            if found is not None:
                brought.append(found)
                group.cancel_scope.cancel()
            has_failed.set()

        for one in tries:
            has_failed = anyio.Event()
            group.start_soon(run, one, has_failed)
            with anyio.move_on_after(_NEXT_S):
                await has_failed.wait()
    return brought[0] if brought else None
