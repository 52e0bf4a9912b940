"""Samples the tasks of a round of training, one sampler per file. Pure: a function of seed, round and results."""

from collections.abc import Mapping
from typing import Protocol

from schemas.ids import TaskId
from trainer.feeding.task_files import TaskSpec

Levels = Mapping[TaskId, int]
"""Attempt levels: 0 to 5 (`trainer.feeding.attempts`)."""


class Sampler(Protocol):
    """Draws the rounds of an endless schedule."""

    @property
    def adapts(self) -> bool:
        """Whether a round depends on results; else the levels are not looked at."""
        ...

    def round(self, index: int, levels: Levels) -> tuple[TaskSpec, ...]:
        """The tasks of a round in the order in which they are admitted: each once, at least one."""
        ...
