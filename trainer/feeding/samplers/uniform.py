"""All tasks alike, drawn without replacement."""

from dataclasses import dataclass

import numpy as np

from trainer.feeding.samplers import Drawing, History, Sampler, sampler, warn_when_short
from trainer.feeding.task_files import TaskSpec


@dataclass(frozen=True)
class UniformSampler:
    """A round is the whole file in a new order or, with `per_round`, so many tasks of it (all, when there are fewer).

    Example: 3 tasks without `per_round` give every task once in rounds 0, 1 and 2, each time in another order; with a
    `per_round` of 2 a task may stand in round 0 and in round 1.
    """

    specs: tuple[TaskSpec, ...]
    seed: int
    per_round: int | None = None
    adapts = False

    def round(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        order = np.random.default_rng((self.seed, index)).permutation(len(self.specs))
        return tuple(self.specs[position] for position in order[: self.per_round])


@sampler("uniform")
def uniform(drawing: Drawing) -> Sampler:
    """With `deduplicate_across_iterations` none comes again before all others came."""
    if drawing.config.deduplicate_across_iterations:
        return UniformSampler(drawing.specs, drawing.seed)
    warn_when_short("all", drawing.specs, drawing.per_round)
    return UniformSampler(drawing.specs, drawing.seed, drawing.per_round)
