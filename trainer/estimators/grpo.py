"""GRPO: how much better an episode was than the others of its task (DeepSeekMath); without the division, Dr. GRPO."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.groups import scores_by_group
from trainer.advantages.tokens import spread
from trainer.estimators import estimator

_EPSILON = 1e-6


@estimator("grpo", compares=True)
@dataclass(frozen=True, kw_only=True)
class GroupRelative:
    """A = (R - mean) / (std + 1e-6), every token the same; the standard deviation is the unbiased one.

    A group of one has mean 0 and standard deviation 1. A group of equal rewards has advantages 0.
    """

    norm_adv_by_std_in_grpo: bool = True
    """False: A = R - mean."""

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        means, stds = {}, {}
        for group, scores in scores_by_group(episodes).items():
            alone = len(scores) == 1
            means[group] = 0.0 if alone else float(scores.mean())
            stds[group] = 1.0 if alone else float(scores.std(ddof=1))
        found = []
        for episode in episodes:
            advantage = episode.score - means[episode.group]
            if self.norm_adv_by_std_in_grpo:
                advantage /= stds[episode.group] + _EPSILON
            found.append(EpisodeAdvantages(spread(advantage, episode.rewards)))
        return found
