"""Limits the calls to an endpoint. Shared by all that call one address with one key.

Invariants: at most `max_concurrent` hold a turn; turns are given in the order in which they were asked for; nobody comes
through before the time that the endpoint named.
"""

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio

_LONGEST_CLOSED_S = 3600.0
"""A quota that is used up for longer is asked about again meanwhile; what an endpoint sends closes nothing for good."""


class Gate:
    def __init__(self, max_concurrent: int) -> None:
        self._turns = anyio.Semaphore(max_concurrent)
        self._closed_until = -math.inf
        self._closed_by = ""
        self._trouble = ""
        self._num_troubled = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits until fewer than `max_concurrent` are inside. Inside, `opened` has to be awaited before each call."""
        async with self._turns:
            yield

    @property
    def closed_by(self) -> str:
        """Why nobody may call now; empty: one may."""
        return self._closed_by if self._closed_until > anyio.current_time() else ""

    async def opened(self) -> None:
        """Returns when calls may be made."""
        # While it waits, the time may be put off.
        while self._closed_until > anyio.current_time():  # noqa: ASYNC110
            await anyio.sleep_until(self._closed_until)

    def close(self, seconds: float, reason: str) -> None:
        """For so long from now, an hour at most, unless it is closed for longer already."""
        until = anyio.current_time() + min(seconds, _LONGEST_CLOSED_S)
        if until > self._closed_until:
            self._closed_until, self._closed_by = until, reason

    @contextmanager
    def troubled(self, reason: str) -> Iterator[None]:
        """Someone waits before calling again, for a reason that concerns nobody else."""
        self._trouble = reason
        self._num_troubled += 1
        try:
            yield
        finally:
            self._num_troubled -= 1

    @property
    def waiting(self) -> str:
        """What is being waited for, for people; empty: nothing."""
        if reason := self.closed_by:
            return f"{reason}: closed for {self._closed_until - anyio.current_time():.0f} s"
        return f"{self._trouble}: {self._num_troubled} to be asked again" if self._num_troubled else ""
