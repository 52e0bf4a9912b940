"""Trying again, and looking again: the one loop of either, whatever is tried.

How long it pauses says `bus.retry`; which errors are worth another try says whoever calls.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from bus.retry import LOOKED_FOR, Backoff

T = TypeVar("T")
E = TypeVar("E", bound=Exception)
LOOKS = 5
"""How often a record is looked for that is known to be there: some one and a half seconds in all."""


class Tries:
    """Rounds, for `async for`: 0, 1, 2, ..., and before each but the first the pause that `backoff` says."""

    def __init__(self, backoff: Backoff, *, most: int | None = None) -> None:
        """`most`: rounds, after which it ends."""
        self._backoff = backoff
        self._most = most
        self._num = 0

    def __aiter__(self) -> "Tries":
        return self

    async def __anext__(self) -> int:
        if self._num == self._most:
            raise StopAsyncIteration
        number, self._num = self._num, self._num + 1
        await anyio.sleep(self._backoff.pause_s(number))
        return number


async def outlast(
    operation: Callable[[], Awaitable[T]],
    errors: tuple[type[E], ...],
    backoff: Backoff,
    *,
    failed: Callable[[E], None] | None = None,
) -> T:
    """Repeats an operation that may be repeated for as long as it fails with one of `errors`, each of which `failed` hears of.

    Raises:
        Exception: what else it fails with.
    """
    async for _ in Tries(backoff):
        try:
            return await operation()
        except errors as error:
            if failed is not None:
                failed(error)
    raise AssertionError("the rounds never end")


async def look(read: Callable[[], Awaitable[T | None]], *, most: int = LOOKS) -> T | None:
    """What `read` finds of a record that is known to be there: a replica that lags may not show it yet.

    None: it was not shown in so many looks.
    """
    async for _ in Tries(LOOKED_FOR, most=most):
        if (found := await read()) is not None:
            return found
    return None
