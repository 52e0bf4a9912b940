"""REINFORCE++ with the mean score of a task's episodes as the baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.ids import GroupId
from trainer.advantages import EpisodeRewards
from trainer.advantages.groups import scores_by_group
from trainer.estimators import estimator
from trainer.estimators.reinforce_plus_plus import ReinforcePlusPlus


@estimator("reinforce_plus_plus_baseline", compares=True, by_token=True, whitens=True)
@dataclass(frozen=True)
class ReinforcePlusPlusBaseline(ReinforcePlusPlus):
    """A group of one keeps its own reward."""

    def baselines(self, episodes: Sequence[EpisodeRewards]) -> Mapping[GroupId, float]:
        groups = scores_by_group(episodes)
        return {group: float(scores.mean()) for group, scores in groups.items() if len(scores) > 1}
