"""Measures how much slower a machine runs what wants to run than one with a core for it: a drill's unit of time.

A thread does the same little work again and again; the factor is its time by the clock over its time on a processor, 1 on a
machine that is free. Nothing of the run that is drilled is in it: a role that comes back late on such a machine is late.
"""

import time
from bisect import bisect_left, bisect_right
from statistics import fmean

import anyio
import anyio.to_thread

_WORK_S = 0.1
"""Of a processor: more than a thread that slept is given at once."""
_EVERY_S = 2.0
_AROUND_S = 5.0


class Slowness:
    """`run` measures until cancelled."""

    def __init__(self) -> None:
        self._at: list[float] = []
        """Unix seconds."""
        self._factors: list[float] = []

    @property
    def highest(self) -> float:
        return max(self._factors, default=1.0)

    def between(self, began_s: float, ended_s: float) -> float:
        """The mean of a span, in Unix seconds, and of what is just around it."""
        first, last = bisect_left(self._at, began_s - _AROUND_S), bisect_right(self._at, ended_s + _AROUND_S)
        return fmean(self._factors[first:last]) if first < last else 1.0

    def note(self, at: float, factor: float) -> None:
        self._at.append(at)
        self._factors.append(max(1.0, factor))

    async def run(self) -> None:
        while True:
            self.note(time.time(), await anyio.to_thread.run_sync(_measure))
            await anyio.sleep(_EVERY_S)


def _measure() -> float:
    began, worked = time.monotonic(), time.thread_time()
    while time.thread_time() - worked < _WORK_S:
        pass
    return (time.monotonic() - began) / _WORK_S
