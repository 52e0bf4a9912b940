"""The frontier: tasks that about half of a group's episodes solve, from which the comparison of its episodes learns most."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from trainer.feeding.samplers import Drawing, History, Sampler, sampler, warn_when_short
from trainer.feeding.task_files import TaskSpec
from trainer.feeding.weighted_draw import weighted_draw

_UNKNOWN, _DOUBT = 0.5, 0.25
"""What every kind of tasks is taken to be solved by before it was tried, and how many tasks that counts like."""
_LEAST = 0.05
"""A task that is always or never solved is seen again now and then: the policy changes."""


@dataclass(frozen=True)
class FrontierSampler:
    """A round is `per_round` tasks drawn without replacement (all, when there are fewer), each with the weight 4 p (1 - p), at
    least 0.05.

    p is the mean of what is known of the task's kind, weight 1, and of its own pass rate, weight f. Of a kind (the tasks of a
    subdomain) that is the mean of its tasks' pass rates, each with its weight f, and of 0.5 with the weight 0.25. f halves
    with every round of tasks that were tried since: what was true of a younger policy is believed less, and looked at again.
    """

    specs: tuple[TaskSpec, ...]
    seed: int
    per_round: int
    adapts = True

    def round(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        rates = self._rates(history)
        weights = np.maximum(_LEAST, 4.0 * rates * (1.0 - rates))
        return weighted_draw(self.specs, weights, self.per_round, seed=(self.seed, index))

    def _rates(self, history: History) -> np.ndarray:
        """float64, of every task."""
        known = [history[spec.task] for spec in self.specs]
        own = np.array([0.0 if task.pass_rate is None else task.pass_rate for task in known])
        belief = np.array([0.0 if task.pass_rate is None else 0.5 ** (task.age / self.per_round) for task in known])
        numbers: dict[Hashable, int] = defaultdict(lambda: len(numbers))
        kinds = np.array([numbers[(spec.domain, spec.subdomain) if spec.subdomain else spec.task] for spec in self.specs])
        solved = _DOUBT * _UNKNOWN + np.bincount(kinds, belief * own)
        tried = _DOUBT + np.bincount(kinds, belief)
        rates: np.ndarray = ((solved / tried)[kinds] + belief * own) / (1.0 + belief)
        return rates


@sampler("frontier")
def frontier(drawing: Drawing) -> Sampler:
    warn_when_short("all", drawing.specs, drawing.per_round)
    return FrontierSampler(drawing.specs, drawing.seed, drawing.per_round)
