"""A deadline that runs only while this process does."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio

from bus.background import background
from bus.retry import Budget

_TICK_S = 0.1


@asynccontextmanager
async def fail_after_running(seconds: float) -> AsyncIterator[None]:
    """As `move_on_after_running`, but raises `TimeoutError`."""
    async with move_on_after_running(seconds):
        yield
        return
    raise TimeoutError


@asynccontextmanager
async def move_on_after_running(seconds: float) -> AsyncIterator[Budget]:
    """Ends the body once it has taken so many seconds, of those in which the event loop came round.

    On a machine that is full a process may stand still for longer than the body is given; nothing was tried meanwhile, and a
    deadline by the clock would end what had no chance to begin. A body that needs no deadline any more sets `left_s` to
    infinity.
    """
    budget = Budget(seconds)
    with anyio.CancelScope() as scope:
        async with background(partial(_spend, budget, scope)):
            yield budget


async def _spend(budget: Budget, scope: anyio.CancelScope) -> None:
    before = anyio.current_time()
    while not budget.is_spent and math.isfinite(budget.left_s):
        await anyio.sleep(_TICK_S)
        now = anyio.current_time()
        budget.spend(now - before, meant_s=2 * _TICK_S)
        before = now
    if budget.is_spent:
        scope.cancel()
