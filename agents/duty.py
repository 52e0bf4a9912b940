"""Switches a worker's intake of steps off and on. Unlike a `Drain`, it may be called back."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


class Duty:
    """Whoever waits for more waits through `while_on`."""

    def __init__(self) -> None:
        self.is_on = True
        self._changed = anyio.Event()
        self._waits: set[anyio.CancelScope] = set()

    def turn(self, on: bool) -> None:
        """Off: what was taken before is not disturbed; only waiting for more is."""
        if on == self.is_on:
            return
        self.is_on = on
        self._changed.set()
        self._changed = anyio.Event()
        for scope in tuple(self._waits) if not on else ():
            scope.cancel()

    async def wait_on(self) -> None:
        while not self.is_on:
            await self._changed.wait()

    async def while_on(self, wait: Callable[[], Awaitable[T]]) -> T | None:
        """What `wait` comes to; None when this is off, or turned off before, which cancels it."""
        if not self.is_on:
            return None
        with anyio.CancelScope() as scope:
            self._waits.add(scope)
            try:
                return await wait()
            finally:
                self._waits.discard(scope)
        return None
