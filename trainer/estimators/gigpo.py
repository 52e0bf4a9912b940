"""GiGPO: episodes are compared with those of their task, and steps with those that answered the same page."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas.ids import GroupId
from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.tokens import discounted_sums
from trainer.estimators import estimator
from trainer.estimators.grpo import GroupRelative, relative


@estimator("gigpo", compares=True, by_token=True)
@dataclass(frozen=True, kw_only=True)
class Gigpo:
    """A = A(episode) + c A(step): the first is GRPO's; the second compares what a step and those behind it earned, discounted,
    with that of all steps of the group that saw the same page (their anchor). A step that is alone with its page has none.

    Early steps nearly always have others to be compared with, since all episodes of a task begin on one page.
    """

    norm_adv_by_std_in_grpo: bool = True
    """False: neither is divided by its standard deviation."""
    gamma: float = 1.0
    """Discount from step to step; 0.95 is usual."""
    step_advantage_weight: float = 1.0
    """c."""

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        whole = GroupRelative(norm_adv_by_std_in_grpo=self.norm_adv_by_std_in_grpo)(episodes)
        returns = [
            discounted_sums(np.array([step.sum() for step in episode.rewards], dtype=np.float64), self.gamma)
            for episode in episodes
        ]
        groups: defaultdict[tuple[GroupId, str], list[float]] = defaultdict(list)
        for episode, earned in zip(episodes, returns, strict=True):
            for anchor, value in zip(episode.anchors, earned, strict=True):
                groups[episode.group, anchor].append(value)
        found = []
        for episode, earned, all_tokens in zip(episodes, returns, whole, strict=True):
            steps = []
            for anchor, value, tokens in zip(episode.anchors, earned, all_tokens.advantages, strict=True):
                peers = np.array(groups[episode.group, anchor])
                above = relative(value, peers, by_std=self.norm_adv_by_std_in_grpo) if len(peers) > 1 else 0.0
                steps.append(tokens + self.step_advantage_weight * above)
            found.append(EpisodeAdvantages(tuple(steps)))
        return found
