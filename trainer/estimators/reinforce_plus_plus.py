"""REINFORCE++: discounted sums of later rewards, whitened over the whole batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.ids import GroupId
from trainer.advantages import EpisodeAdvantages, EpisodeRewards, Steps
from trainer.advantages.tokens import discounted_sums, joined, parted
from trainer.advantages.whitening import whitened
from trainer.estimators import estimator


@estimator("reinforce_plus_plus", by_token=True, whitens=True)
@dataclass(frozen=True)
class ReinforcePlusPlus:
    """G_t = r_t + gamma G_{t+1} over all tokens of an episode, step after step; A is G, whitened.

    With `high_level_gamma` at 0, where rewards stand at the steps that earned them, each step counts by its own reward alone.
    """

    gamma: float = 1.0
    high_level_gamma: float = 1.0
    """At the last token of a step, beside gamma: how much what later steps earn counts for it."""

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        baselines = self.baselines(episodes)
        sums = [self._sums(episode.rewards, baselines.get(episode.group, 0.0)) for episode in episodes]
        return [EpisodeAdvantages(steps) for steps in self.whitened(sums, episodes)]

    def whitened(self, sums: Sequence[Steps], episodes: Sequence[EpisodeRewards]) -> list[Steps]:
        """The sums of each of the episodes, with mean 0 and variance 1 over those that are compared."""
        del episodes
        return whitened(sums)

    def baselines(self, episodes: Sequence[EpisodeRewards]) -> Mapping[GroupId, float]:
        """By group, what is taken off the reward at each episode's last token; those that are missing have none."""
        del episodes
        return {}

    def _sums(self, rewards: Steps, baseline: float) -> Steps:
        row = joined(rewards)
        row[-1:] -= baseline
        factors = np.full(len(row), self.gamma)
        factors[np.cumsum([len(step) for step in rewards], dtype=np.int64) - 1] *= self.high_level_gamma
        return parted(discounted_sums(row, factors), rewards)
