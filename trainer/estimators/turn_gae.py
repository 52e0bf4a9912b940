"""Generalised advantage estimation from turn to turn: one action a turn, whatever its tokens (VAGEN without concatenation)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainer.advantages import EpisodeAdvantages, EpisodeRewards, Steps
from trainer.advantages.whitening import whitened
from trainer.estimators import estimator
from trainer.estimators.gae import lambda_advantages


@estimator("turn_gae", critic=True, by_token=True, whitens=True)
@dataclass(frozen=True)
class TurnGae:
    """A turn is a step of the episode, its value the critic's before its first token, its reward all that its tokens earned.

    All tokens of a turn have its advantage, whitened over the tokens of the batch; the critic learns A + V, of before that, at
    the first token of each turn alone.
    """

    high_level_gamma: float = 1.0
    """From turn to turn."""
    lam: float = 1.0
    bootstrap_cut_off: bool = False
    """Behind the end of an episode that was cut off, V is what it was last; else 0."""

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        plain, returns = zip(*map(self._turns, episodes), strict=True) if episodes else ((), ())
        return [EpisodeAdvantages(*pair) for pair in zip(whitened(plain), returns, strict=True)]

    def _turns(self, episode: EpisodeRewards) -> tuple[Steps, Steps]:
        earned = np.array([step.sum() for step in episode.rewards], dtype=np.float64)
        values = np.array([step[0] for step in episode.values], dtype=np.float64)
        behind = float(values[-1]) if self.bootstrap_cut_off and episode.cut_off and len(values) else 0.0
        turns = lambda_advantages(earned, values, gamma=self.high_level_gamma, lam=self.lam, behind=behind)
        advantages = tuple(np.full(len(step), turn) for step, turn in zip(episode.rewards, turns, strict=True))
        returns = tuple(np.full(len(step), np.nan) for step in episode.rewards)
        for step, turn, value in zip(returns, turns, values, strict=True):
            step[0] = turn + value
        return advantages, returns
