"""REINFORCE++: discounted sums of later rewards, whitened over the whole batch; or with the task's mean as baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.advantages import EpisodeAdvantages, EpisodeRewards, Steps
from trainer.advantages.groups import scores_by_group
from trainer.advantages.tokens import discounted_sums, joined, parted
from trainer.advantages.whitening import whitened


@dataclass(frozen=True)
class ReinforcePlusPlus:
    """G_t = r_t + gamma G_{t+1} over all tokens of an episode, step after step; A is G, whitened."""

    gamma: float = 1.0
    subtracts_group_mean: bool = False
    """The mean score of the group is taken off the reward at each episode's last token first; a group of one keeps its own."""

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        means = {
            group: float(scores.mean()) if self.subtracts_group_mean and len(scores) > 1 else 0.0
            for group, scores in scores_by_group(episodes).items()
        }
        sums = [self._sums(episode.rewards, means[episode.group]) for episode in episodes]
        return [EpisodeAdvantages(steps) for steps in whitened(sums)]

    def _sums(self, rewards: Steps, baseline: float) -> Steps:
        row = joined(rewards)
        row[-1:] -= baseline
        return parted(discounted_sums(row, self.gamma), rewards)
