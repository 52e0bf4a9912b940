"""GRPO: how much better an episode was than the others of its task (DeepSeekMath); without the division, Dr. GRPO."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.groups import scores_by_group
from trainer.advantages.tokens import spread
from trainer.estimators import estimator

_EPSILON = 1e-6


def relative(score: float, scores: np.ndarray, *, by_std: bool) -> float:
    """(score - mean) / (std + 1e-6) with the unbiased deviation; one alone has mean 0 and deviation 1."""
    alone = len(scores) == 1
    above = score - (0.0 if alone else float(scores.mean()))
    return above / ((1.0 if alone else float(scores.std(ddof=1))) + _EPSILON) if by_std else above


@estimator("grpo", compares=True)
@dataclass(frozen=True, kw_only=True)
class GroupRelative:
    """A = (R - mean) / (std + 1e-6), every token the same; the standard deviation is the unbiased one.

    A group of one has mean 0 and standard deviation 1; the trainer leaves such out. Equal rewards have advantages 0.
    """

    norm_adv_by_std_in_grpo: bool = True
    """False: A = R - mean."""

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        groups = scores_by_group(episodes)
        by_std = self.norm_adv_by_std_in_grpo
        return [
            EpisodeAdvantages(spread(relative(each.score, groups[each.group], by_std=by_std), each.rewards))
            for each in episodes
        ]
