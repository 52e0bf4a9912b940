"""Generalised advantage estimation, token by token, with a critic (PPO)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.tokens import discounted_sums, joined, parted
from trainer.advantages.whitening import whitened
from trainer.estimators import estimator


def lambda_advantages(rewards: np.ndarray, values: np.ndarray, *, gamma: float, lam: float) -> np.ndarray:
    """delta_t = r_t + gamma V_{t+1} - V_t and A_t = delta_t + gamma lam A_{t+1}; behind the end both are 0."""
    following = np.append(values[1:], 0.0)[: len(values)]
    return discounted_sums(rewards + gamma * following - values, gamma * lam)


@estimator("gae", critic=True)
@dataclass(frozen=True)
class Gae:
    """Over all tokens of an episode, step after step; advantages are whitened, returns are A + V before that."""

    gamma: float = 1.0
    lam: float = 1.0

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        plain, returns = [], []
        for episode in episodes:
            values = joined(episode.values)
            row = lambda_advantages(joined(episode.rewards), values, gamma=self.gamma, lam=self.lam)
            plain.append(parted(row, episode.rewards))
            returns.append(parted(row + values, episode.rewards))
        return [EpisodeAdvantages(*pair) for pair in zip(whitened(plain), returns, strict=True)]
