"""Tasks that run beside a body and end with it, without changing what the body raises.

Invariant: one error comes out, never a group, so that whoever handles an error by its kind meets it. Where several failed it
is the body's, or the first; the others are noted on it.
"""

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
    """A task group that is cancelled when the body ends."""
    of_body: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            try:
                yield group
            except BaseException as error:
                of_body = error
                raise
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        chosen: BaseException = failures.exceptions[0]
        if of_body is not None and any(error is of_body for error in failures.exceptions):
            chosen = of_body
        for other in failures.exceptions:
            if other is not chosen:
                chosen.add_note(f"beside it: {type(other).__name__}: {other}")
        raise chosen from chosen.__cause__


def first_of(group: BaseExceptionGroup[E]) -> E:
    """The first error inside a group, however deep."""
    error = group.exceptions[0]
    return first_of(error) if isinstance(error, BaseExceptionGroup) else error
