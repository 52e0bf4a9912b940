"""Tasks by how often they are solved, in five bands, each with its weight (OpenWebRL's query weights)."""

from dataclasses import dataclass

import numpy as np

from schemas.env_config import SuccessBands
from trainer.feeding.samplers import Drawing, History, Sampler, sampler, warn_when_short
from trainer.feeding.task_files import TaskSpec
from trainer.feeding.weighted_draw import weighted_draw

_LOW, _HIGH = 0.3, 0.7
_NEW = 1.0


@dataclass(frozen=True)
class SuccessBandsSampler:
    """A round is `per_round` tasks drawn without replacement (all, when there are fewer), each with the weight of its band:
    its pass rate is 0, below 0.3, below 0.7, below 1, or 1. A task that was not tried has the weight 1.

    OpenWebRL's rate is of all episodes so far, and needs three of them; this one is of late (`TaskHistory.pass_rate`).
    """

    specs: tuple[TaskSpec, ...]
    seed: int
    per_round: int
    weights: SuccessBands
    adapts = True

    def round(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        weights = np.array([self._weight(history[spec.task].pass_rate) for spec in self.specs])
        return weighted_draw(self.specs, weights, self.per_round, seed=(self.seed, index))

    def _weight(self, pass_rate: float | None) -> float:
        bands = self.weights
        if pass_rate is None:
            return _NEW
        if pass_rate in (0.0, 1.0):
            return bands.all_success if pass_rate else bands.all_fail
        return bands.low if pass_rate < _LOW else bands.mid if pass_rate < _HIGH else bands.high


@sampler("success_bands")
def success_bands(drawing: Drawing) -> Sampler:
    warn_when_short("all", drawing.specs, drawing.per_round)
    return SuccessBandsSampler(drawing.specs, drawing.seed, drawing.per_round, drawing.config.success_bands)
