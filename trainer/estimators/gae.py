"""Generalised advantage estimation, token by token, with a critic (PPO)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.tokens import discounted_sums, joined, parted
from trainer.advantages.whitening import whitened
from trainer.estimators import estimator


def lambda_advantages(rewards: np.ndarray, values: np.ndarray, *, gamma: float, lam: float, behind: float = 0.0) -> np.ndarray:
    """delta_t = r_t + gamma V_{t+1} - V_t and A_t = delta_t + gamma lam A_{t+1}; behind the end A is 0 and V is `behind`."""
    following = np.append(values[1:], behind)[: len(values)]
    return discounted_sums(rewards + gamma * following - values, gamma * lam)


def last_value(episode: EpisodeRewards) -> float:
    """What the critic said last of an episode that was cut off, which stands for the value of the state behind it; else 0."""
    return float(episode.values[-1][-1]) if episode.cut_off and episode.values else 0.0


@estimator("gae", critic=True, by_token=True, whitens=True)
@dataclass(frozen=True)
class Gae:
    """Over all tokens of an episode, step after step; advantages are whitened, returns are A + V before that."""

    gamma: float = 1.0
    lam: float = 1.0
    bootstrap_cut_off: bool = False
    """Behind the end of an episode that was cut off, V is what it was last; else 0."""

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        plain, returns = [], []
        for episode in episodes:
            values = joined(episode.values)
            behind = last_value(episode) if self.bootstrap_cut_off else 0.0
            row = lambda_advantages(joined(episode.rewards), values, gamma=self.gamma, lam=self.lam, behind=behind)
            plain.append(parted(row, episode.rewards))
            returns.append(parted(row + values, episode.rewards))
        return [EpisodeAdvantages(*pair) for pair in zip(whitened(plain), returns, strict=True)]
