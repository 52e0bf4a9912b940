"""RLOO: an episode's reward less the mean of the others of its task (REINFORCE leave-one-out)."""

from collections.abc import Sequence

from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.groups import scores_by_group
from trainer.advantages.tokens import spread
from trainer.estimators import estimator


@estimator("rloo", compares=True)
def leave_one_out(episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
    """A = n / (n - 1) * (R - mean of n), every token the same; a group of one has nothing to be compared with: A = R."""
    groups = scores_by_group(episodes)
    found = []
    for episode in episodes:
        scores = groups[episode.group]
        n = len(scores)
        advantage = episode.score if n == 1 else n / (n - 1) * (episode.score - float(scores.mean()))
        found.append(EpisodeAdvantages(spread(advantage, episode.rewards)))
    return found
