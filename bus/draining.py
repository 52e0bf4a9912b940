"""Leaving when told to: a worker that drains takes nothing more, finishes what it holds, and ends by itself.

Invariant: what was begun before is not disturbed; only waiting for more is. Once requested it stays requested.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


class Drain:
    """Whether a worker was told to leave. Whoever waits for more waits through `unless`."""

    def __init__(self) -> None:
        self.requested = False
        self.comes_back = False
        """Whoever keeps the worker running is to start it anew."""
        self._waits: set[anyio.CancelScope] = set()

    def request(self, *, comes_back: bool = False) -> None:
        """From now on nothing more is taken. The last word on coming back counts."""
        self.requested, self.comes_back = True, comes_back
        for scope in tuple(self._waits):
            scope.cancel()

    async def unless(self, wait: Callable[[], Awaitable[T]]) -> T | None:
        """What `wait` comes to; None when leaving is requested before, which cancels it."""
        if self.requested:
            return None
        with anyio.CancelScope() as scope:
            self._waits.add(scope)
            try:
                return await wait()
            finally:
                self._waits.discard(scope)
        return None
