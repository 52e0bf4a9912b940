"""What the browser benchmark asks of a system, and how it times it."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self


@dataclass
class Timed:
    """Seconds by phase, and of every single step by its kind."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    steps: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds.setdefault(phase, []).append(time.monotonic() - began)

    def step(self, kind: str, seconds: float) -> None:
        """Of one action and the look behind it."""
        self.steps.setdefault(kind, []).append(seconds)


class Player(ABC):
    """A system that plays episodes of the schedule, any number at once."""

    @abstractmethod
    async def __aenter__(self) -> Self: ...
    @abstractmethod
    async def __aexit__(self, *_: object) -> None: ...
    @abstractmethod
    async def play(self, episode: int, timed: Timed) -> int:
        """Returns the number of steps."""
