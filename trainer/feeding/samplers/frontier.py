"""The frontier: tasks that about half of a group's episodes solve, from which the comparison of its episodes learns most."""

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from trainer.feeding.samplers import Drawing, History, Sampler, sampler, warn_when_short
from trainer.feeding.task_files import TaskSpec
from trainer.feeding.weighted_draw import weighted_draw

_UNKNOWN = 0.5
_LEAST = 0.05
"""A task that is always or never solved is seen again now and then: the policy changes."""


@dataclass(frozen=True)
class FrontierSampler:
    """A round is `per_round` tasks drawn without replacement (all, when there are fewer), each with the weight 4 p (1 - p), at
    least 0.05. p is half the task's pass rate of late and half the mean of its subdomain's tasks; one of them alone where the
    other is not known, 0.5 where neither is."""

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
        own = {spec.task: rate for spec in self.specs if (rate := history[spec.task].pass_rate) is not None}
        kinds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for spec in self.specs:
            if spec.task in own and spec.subdomain:
                kinds[spec.domain, spec.subdomain].append(own[spec.task])
        means = {kind: fmean(rates) for kind, rates in kinds.items()}
        known = [(own.get(spec.task), means.get((spec.domain, spec.subdomain))) for spec in self.specs]
        return np.array([fmean([rate for rate in both if rate is not None] or [_UNKNOWN]) for both in known])


@sampler("frontier")
def frontier(drawing: Drawing) -> Sampler:
    warn_when_short("all", drawing.specs, drawing.per_round)
    return FrontierSampler(drawing.specs, drawing.seed, drawing.per_round)
