"""A sampler of one's own: easy tasks first, and with every round a wider choice.

env_config:
  train_tasks_sampler: examples/own_sampler.py:easy_first
"""

from dataclasses import dataclass

import numpy as np

from trainer.feeding.samplers import Drawing, History, sampler
from trainer.feeding.task_files import TaskSpec


@sampler("easy_first")
@dataclass(frozen=True)
class EasyFirst:
    """Round n draws from the n + 1 easiest rounds' worth of tasks."""

    drawing: Drawing
    adapts = False

    def round(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        size = self.drawing.per_round
        easiest = sorted(self.drawing.specs, key=lambda spec: spec.difficulty)[: size * (index + 1)]
        order = np.random.default_rng((self.drawing.seed, index)).permutation(len(easiest))
        return tuple(easiest[position] for position in order[:size])
