"""Defines the pauses before each new try, as values: whatever tries or looks again takes its back-off from here.

What tries again is `bus.trying`. Nothing here waits.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that grow.

    Example: `Backoff(0.1, 2.0)` pauses for 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2, ... seconds.
    """

    first_s: float
    longest_s: float
    factor: float = 2.0

    def pause_s(self, num_tried: int) -> float:
        """Seconds before the next try after so many; none before the first."""
        if num_tried < 1 or self.first_s <= 0.0:
            return 0.0
        # Whoever has tried a thousand times needs no power of two that no float holds.
        return min(self.first_s * self.factor ** min(num_tried - 1, 64), self.longest_s)

    def drawn_s(self, num_tried: int, rng: random.Random) -> float:
        """Any number of seconds up to that: of many that were refused at once, not all come again at once."""
        return rng.uniform(0.0, self.pause_s(num_tried))

    def pauses_s(self) -> Iterator[float]:
        """Before the first try, the second, ... for ever."""
        return map(self.pause_s, itertools.count())


ASKED_AGAIN = Backoff(0.02, 0.25)
"""One server, by one operation: it is away, or elects a leader."""
SERVER_AWAITED = Backoff(0.2, 2.0)
"""The server, by whoever has nothing else to do, for as long as it takes."""
ROOM_AWAITED = Backoff(0.1, 2.0)
"""Room in a stream that is full."""
LOOKED_FOR = Backoff(0.02, 1.0, factor=4.0)
"""A record that is known to be there, and that a lagging replica does not show yet."""
REDELIVERED = Backoff(0.2, 15.0, factor=5.0)
"""An input whose handling failed."""


@dataclass(slots=True)
class Budget:
    """Seconds that tries may take together, of those in which there was something to try.

    A process that could not run for a while (its event loop was held up, its machine stood still) has not tried meanwhile:
    of a step that took longer than it was meant to, only what was meant counts.
    """

    left_s: float

    @property
    def is_spent(self) -> bool:
        return self.left_s <= 0.0

    def spend(self, took_s: float, *, meant_s: float) -> None:
        self.left_s -= min(took_s, meant_s)
