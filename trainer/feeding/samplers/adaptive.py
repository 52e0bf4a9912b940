"""New and once failed tasks first, and sites with few tasks more often."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.site import site_of
from trainer.feeding.samplers import Drawing, History, Sampler, sampler, warn_when_short
from trainer.feeding.task_files import TaskSpec
from trainer.feeding.weighted_draw import weighted_draw

LEVEL_WEIGHTS = (100.0, 10.0, 1.0, 0.1, 0.01, 0.001)
_SITE_WEIGHTS = (0.1, 10.0)


@dataclass(frozen=True)
class AdaptiveSampler:
    """A round is `per_round` tasks drawn without replacement (all, when there are fewer), each with the weight of its attempt
    level times that of its site."""

    specs: tuple[TaskSpec, ...]
    seed: int
    per_round: int
    adapts = True

    def round(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        weights = self._site_weights * np.array([LEVEL_WEIGHTS[history[spec.task].level] for spec in self.specs])
        return weighted_draw(self.specs, weights, self.per_round, seed=(self.seed, index))

    @cached_property
    def _site_weights(self) -> np.ndarray:
        return site_weights(self.specs)


def site_weights(specs: Sequence[TaskSpec]) -> np.ndarray:
    """float64, one per task: 1 / the number of its site's tasks, stretched to lie from 0.1 to 10; 1 if all are equal."""
    sites = [site_of(spec.website) for spec in specs]
    counts = Counter(sites)
    shares = np.array([1.0 / counts[site] for site in sites])
    low, high = shares.min(), shares.max()
    if low == high:
        return np.ones(len(specs))
    least, most = _SITE_WEIGHTS
    stretched: np.ndarray = least + (shares - low) / (high - low) * (most - least)
    return stretched


@sampler("adaptive")
def adaptive(drawing: Drawing) -> Sampler:
    warn_when_short("all", drawing.specs, drawing.per_round)
    return AdaptiveSampler(drawing.specs, drawing.seed, drawing.per_round)
