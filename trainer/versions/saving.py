"""Decides which versions have the whole state that training goes on from, and which only what policies load."""

import time
from collections.abc import Callable

from schemas.trainer_config import TrainerConfig

_MINUTE_S = 60.0


class Saving:
    """Of one trainer's life."""

    def __init__(self, config: TrainerConfig, *, num_iterations: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = config.save_every
        self._seconds = config.save_minutes * _MINUTE_S
        self._last = num_iterations
        self._clock = clock
        self._saved_at = clock()

    def is_due(self, version: int, *, whole: int, leaves: bool) -> bool:
        """Whether `version`, which is about to be written, shall be whole.

        Args:
            whole: the newest that is.
            leaves: this trainer ends behind it.
        """
        is_old = self._seconds > 0 and self._clock() - self._saved_at >= self._seconds
        due = leaves or is_old or version >= self._last or version - whole >= self._every
        if due:
            self._saved_at = self._clock()
        return due
