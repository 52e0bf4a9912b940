"""Bi-level GAE: between turns first, then token by token inside each turn (VAGEN).

Checked against what VAGEN released: a turn is known by its last token. Between turns, A_k = delta_k + Gamma lam A_{k+1} with
delta_k = r_k + Gamma V(end of k+1) - V(end of k). Inside turn k the end's advantage is A_k, and it is where the recursion over
the earlier tokens begins: A_t = r_t + gamma V_{t+1} - V_t + gamma lam A_{t+1}. With gamma = Gamma = lam = 1 that is plain GAE.

r_k is what the turn's last token earned; what is taken off earlier tokens (a divergence) counts inside their turn only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainer.advantages import EpisodeAdvantages, EpisodeRewards, Steps
from trainer.advantages.whitening import whitened
from trainer.estimators import estimator
from trainer.estimators.gae import lambda_advantages, last_value


@estimator("bi_level_gae", critic=True, by_token=True, whitens=True)
@dataclass(frozen=True)
class BiLevelGae:
    """A turn is a step of the episode. Advantages are whitened, returns are A + V before that."""

    gamma: float = 1.0
    """From token to token."""
    lam: float = 1.0
    """Of both levels."""
    high_level_gamma: float = 1.0
    """From turn to turn."""
    bootstrap_cut_off: bool = False
    """Behind the end of an episode that was cut off, V is what it was last; else 0."""

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        plain = [self._advantages(episode) for episode in episodes]
        returns = [
            tuple(step + values for step, values in zip(steps, episode.values, strict=True))
            for steps, episode in zip(plain, episodes, strict=True)
        ]
        return [EpisodeAdvantages(*pair) for pair in zip(whitened(plain), returns, strict=True)]

    def _advantages(self, episode: EpisodeRewards) -> Steps:
        rewards, values = episode.rewards, episode.values
        ends = [np.array([step[-1] for step in steps], dtype=np.float64) for steps in (rewards, values)]
        behind = last_value(episode) if self.bootstrap_cut_off else 0.0
        turns = lambda_advantages(*ends, gamma=self.high_level_gamma, lam=self.lam, behind=behind)
        return tuple(
            self._inside(earned, valued, float(turn)) for earned, valued, turn in zip(rewards, values, turns, strict=True)
        )

    def _inside(self, rewards: np.ndarray, values: np.ndarray, turn: float) -> np.ndarray:
        aimed = np.append(rewards[:-1], turn + values[-1])
        return lambda_advantages(aimed, values, gamma=self.gamma, lam=self.lam)
