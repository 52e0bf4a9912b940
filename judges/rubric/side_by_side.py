"""Many questions about one episode, asked at once."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from schemas.errors import MillraceError

_AT_ONCE = 32
"""Of one episode: as many as one endpoint takes at once by default."""
Found = TypeVar("Found")


async def all_of(asks: Sequence[Callable[[], Awaitable[Found]]]) -> list[Found]:
    """What each found, in their order. The first error ends the others, and is raised as itself."""
    found = dict[int, Found]()
    errors = list[MillraceError]()
    waiting = iter(enumerate(asks))

    async def work() -> None:
        try:
            for index, ask in waiting:
                found[index] = await ask()
        except MillraceError as error:
            errors.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for _ in range(min(_AT_ONCE, len(asks))):
            group.start_soon(work)
    if errors:
        raise errors[0]
    return [found[index] for index in range(len(asks))]
