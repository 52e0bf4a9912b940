"""Samplers of training tasks, one a file: what a round of training plays. Pure: a function of seed, round and results.

@sampler("in_order")
@dataclass(frozen=True)
class InOrder:
    drawing: Drawing
    adapts = False

    def round(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        return self.drawing.specs
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import structlog

from schemas.env_config import EnvConfig
from schemas.extensions import SAMPLERS
from schemas.ids import TaskId
from trainer.feeding.attempts import TaskHistory
from trainer.feeding.task_files import TaskSpec

History = Mapping[TaskId, TaskHistory]
"""Of every task that can be drawn."""
_log = structlog.get_logger()


class Sampler(Protocol):
    """Draws the rounds of an endless schedule."""

    @property
    def adapts(self) -> bool:
        """Whether a round depends on results; else `history` is empty."""
        ...

    def round(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        """The tasks of a round in the order in which they are admitted: each once, at least one."""
        ...


@dataclass(frozen=True)
class Drawing:
    """What a sampler is made with."""

    specs: tuple[TaskSpec, ...]
    """Of the task file, one at least."""
    seed: int
    per_round: int
    """Tasks that an iteration consumes."""
    config: EnvConfig


Made = TypeVar("Made", bound=Callable[[Drawing], Sampler])


def sampler(name: str) -> Callable[[Made], Made]:
    """Declares a sampler: a class, or a function, from a `Drawing` to a `Sampler`."""
    return lambda made: SAMPLERS.declare(name, made, None)


def sampler_of(env: EnvConfig, specs: Sequence[TaskSpec], *, num_members: int, seed: int) -> Sampler:
    """The sampler that the configuration names.

    `num_members`: episodes of every task, so that a round of tasks is what an iteration consumes.

    Raises:
        ConfigurationError: there is no such sampler, or no task could ever be drawn.
    """
    per_round = max(1, env.train_tasks_rollout_size // num_members)
    made: Sampler = SAMPLERS.find(env.train_tasks_sampler).made(Drawing(tuple(specs), seed, per_round, env))
    return made


def warn_when_short(name: str, specs: Sequence[TaskSpec], wanted: int) -> None:
    """`name`: of the class of difficulty."""
    if len(specs) < wanted:
        _log.warning("too_few_tasks", difficulty_class=name, num_tasks=len(specs), wanted_an_iteration=wanted)
