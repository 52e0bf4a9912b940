"""Tasks that run beside a body and end with it, without changing what the body raises."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

E = TypeVar("E", bound=BaseException)


@asynccontextmanager
async def background(*tasks: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs `tasks` while the context is open."""
    async with companion_group() as group:
        for task in tasks:
            group.start_soon(task)
        yield


@asynccontextmanager
async def companion_group() -> AsyncIterator[TaskGroup]:
    """A task group that is cancelled when the body ends. The body's error comes out as it is, not inside a group of one."""
    try:
        async with anyio.create_task_group() as group:
            yield group
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        if len(failures.exceptions) > 1:
            raise
        only = failures.exceptions[0]
        raise only from only.__cause__


def first_of(group: BaseExceptionGroup[E]) -> E:
    """The first error inside a group, however deep."""
    error = group.exceptions[0]
    return first_of(error) if isinstance(error, BaseExceptionGroup) else error
