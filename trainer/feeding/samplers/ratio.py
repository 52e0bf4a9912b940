"""Classes of difficulty in fixed proportions, each drawn from uniformly."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import structlog

from schemas.env_config import DifficultyShare
from schemas.errors import ConfigurationError
from trainer.feeding.samplers import Drawing, History, Sampler, sampler, warn_when_short
from trainer.feeding.task_files import TaskSpec

_log = structlog.get_logger()


@dataclass(frozen=True)
class DifficultyClass:
    """The tasks of one class, and how many of them a round is to have."""

    name: str
    specs: tuple[TaskSpec, ...]
    quota: int

    @property
    def size(self) -> int:
        """Tasks that a round really has of it."""
        return min(self.quota, len(self.specs))


@dataclass(frozen=True)
class RatioSampler:
    """A round has `DifficultyClass.size` tasks of every class, shuffled.

    With `deduplicate`, a class is cut into rounds of its size in a random order, and shuffled anew when less than a round's
    worth is left: nothing comes again before that.
    """

    classes: tuple[DifficultyClass, ...]
    seed: int
    deduplicate: bool
    adapts = False

    def __post_init__(self) -> None:
        if not any(each.size for each in self.classes):
            raise ConfigurationError(
                "no training task has a difficulty that env_config.difficulty_ratio gives a place in an iteration: write "
                "ranges that env_config.train_tasks has, or a larger env_config.train_tasks_rollout_size"
            )

    def round(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        # Seeds of unequal lengths may be alike (short ones are padded with zeros): all have three numbers.
        chosen = [
            spec for number, each in enumerate(self.classes, start=1) if each.size for spec in self._drawn(number, each, index)
        ]
        order = np.random.default_rng((self.seed, 0, index)).permutation(len(chosen))
        return tuple(chosen[position] for position in order)

    def _drawn(self, number: int, of: DifficultyClass, index: int) -> list[TaskSpec]:
        num_rounds = len(of.specs) // of.size if self.deduplicate else 1
        pass_index, part = divmod(index, num_rounds)
        order = np.random.default_rng((self.seed, number, pass_index)).permutation(len(of.specs))
        return [of.specs[position] for position in order[part * of.size : (part + 1) * of.size]]


def difficulty_classes(
    specs: Sequence[TaskSpec], shares: Mapping[str, DifficultyShare], per_round: int
) -> tuple[DifficultyClass, ...]:
    """Sorts tasks into classes; those of no class are left out."""
    quotas = allocation({name: share.weight for name, share in shares.items()}, per_round)
    return tuple(
        DifficultyClass(name, tuple(spec for spec in specs if low <= spec.difficulty <= high), quotas[name])
        for name, (low, high) in ((name, share.range) for name, share in shares.items())
    )


def allocation(weights: Mapping[str, float], size: int) -> dict[str, int]:
    """Whole numbers in proportion to weights that sum up to `size`: rounded down, what is left to the largest remainders.

    Example: weights 1, 1, 1 and a size of 10 give 4, 3, 3.
    """
    total = sum(weights.values())
    exact = {name: size * weight / total for name, weight in weights.items()}
    shares = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(weights, key=lambda name: shares[name] - exact[name])
    for name in by_remainder[: size - sum(shares.values())]:
        shares[name] += 1
    return shares


@sampler("ratio")
def ratio(drawing: Drawing) -> Sampler:
    """Raises `ConfigurationError` where no class has a task."""
    classes = difficulty_classes(drawing.specs, drawing.config.difficulty_ratio, drawing.per_round)
    for each in classes:
        warn_when_short(each.name, each.specs, each.quota)
    if num_left_out := len(drawing.specs) - sum(len(each.specs) for each in classes):
        _log.warning("tasks_of_no_difficulty_class", num_tasks=num_left_out)
    return RatioSampler(classes, drawing.seed, drawing.config.deduplicate_across_iterations)
