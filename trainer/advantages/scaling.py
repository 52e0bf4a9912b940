"""Factors on the advantages of whichever estimator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trainer.advantages import EpisodeAdvantages, EpisodeRewards


@dataclass(frozen=True)
class Scaled:
    """Divides an episode's advantages by a length, and multiplies those below zero. Returns stay as they are."""

    estimator: Callable[[Sequence[EpisodeRewards]], list[EpisodeAdvantages]]
    length_normaliser: Literal["none", "per_trajectory", "constant"] = "none"
    """Divides by nothing, by the episode's answered steps, or by `length_constant` (AsyncWebRL)."""
    length_constant: float = 10.0
    negative_scale: float = 1.0

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        return [
            EpisodeAdvantages(tuple(self._scaled(step, episode) for step in found.advantages), found.returns)
            for episode, found in zip(episodes, self.estimator(episodes), strict=True)
        ]

    def _scaled(self, advantages: np.ndarray, episode: EpisodeRewards) -> np.ndarray:
        match self.length_normaliser:
            case "none":
                divisor = 1.0
            case "per_trajectory":
                divisor = float(max(1, episode.num_steps))
            case "constant":
                divisor = self.length_constant
        scaled: np.ndarray = np.where(advantages < 0, self.negative_scale, 1.0) * advantages / divisor
        return scaled
