"""What is done with the advantages of whichever estimator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.objective_config import ObjectiveConfig
from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.groups import pass_rates
from trainer.advantages.whitening import whitened

NUM_PASS_RATES = 5
"""None of a group's episodes succeeded, up to a third, up to two thirds, more, all."""


@dataclass(frozen=True)
class Scaled:
    """Weighs groups by their pass rate, normalises the batch, divides by a length, and multiplies what is below zero; as
    configured, in this order. Returns stay as they are."""

    estimator: Callable[[Sequence[EpisodeRewards]], list[EpisodeAdvantages]]
    config: ObjectiveConfig

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        found = self.estimator(episodes)
        steps = [each.advantages for each in found]
        if self.config.pass_rate_weights:
            rates = pass_rates(episodes)
            weights = [self.config.pass_rate_weights[pass_rate_class(rates[episode.group])] for episode in episodes]
            steps = [tuple(weight * step for step in mine) for weight, mine in zip(weights, steps, strict=True)]
        if self.config.normalize_advantages:
            steps = whitened(steps)
        return [
            EpisodeAdvantages(tuple(self._scaled(step, episode) for step in mine), each.returns)
            for mine, each, episode in zip(steps, found, episodes, strict=True)
        ]

    def _scaled(self, advantages: np.ndarray, episode: EpisodeRewards) -> np.ndarray:
        match self.config.length_normaliser:
            case "none":
                divisor = 1.0
            case "per_trajectory":
                divisor = float(max(1, episode.num_steps))
            case "constant":
                divisor = self.config.length_constant
        negative = np.where(advantages < 0, self.config.negative_advantage_scale, 1.0)
        scaled: np.ndarray = negative * advantages / divisor
        return scaled


def pass_rate_class(rate: float) -> int:
    """Which of the `NUM_PASS_RATES` classes a share of successes is in."""
    if rate in (0.0, 1.0):
        return NUM_PASS_RATES - 1 if rate else 0
    return 1 + (rate > 1 / 3) + (rate > 2 / 3)
