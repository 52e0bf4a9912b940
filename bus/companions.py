"""Tasks that run beside a body and end with it, without changing what the body raises."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def companions(*tasks: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs `tasks` while the context is open. The body's error comes out as it is, not inside a group of one."""
    try:
        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(task)
            yield
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        if len(failures.exceptions) > 1:
            raise
        only = failures.exceptions[0]
        raise only from only.__cause__
