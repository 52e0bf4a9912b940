"""Your estimator: says from the rewards of a group, which are episodes of one task, how much more or less likely each of them
is to become.

Here it is what an episode got above the mean of its group; what lies below counts `failures` times, a setting that config.yaml
gives. A small policy unlearns to act when failures weigh as much as successes.

More: docs/objectives.md has those that come with Millrace, examples/own_objective.py a loss as well.
"""

from collections.abc import Sequence

from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.groups import scores_by_group
from trainer.advantages.tokens import spread
from trainer.estimators import estimator


@estimator("above_mean", compares=True)
def above_mean(episodes: Sequence[EpisodeRewards], *, failures: float = 1.0) -> list[EpisodeAdvantages]:
    groups = scores_by_group(episodes)
    found = []
    for episode in episodes:
        above = episode.score - float(groups[episode.group].mean())
        found.append(EpisodeAdvantages(spread(above if above > 0 else failures * above, episode.rewards)))
    return found
