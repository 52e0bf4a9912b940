"""ReMax: the sum of later rewards, less what the greedy episode of the same task earned."""

from collections.abc import Sequence

from trainer.advantages import EpisodeAdvantages, EpisodeRewards, Steps
from trainer.advantages.groups import scores_by_group
from trainer.advantages.tokens import discounted_sums, joined, parted, spread
from trainer.estimators import estimator


@estimator("remax", greedy_baseline=True, by_token=True)
def remax(episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
    """A_t = r_t + r_{t+1} + ... - R(greedy), undiscounted; the mean where there are several greedy episodes.

    Greedy episodes have advantages 0, and so has a group whose greedy episode is missing: there is nothing to compare with.
    """
    baselines = {
        group: float(scores.mean()) for group, scores in scores_by_group([one for one in episodes if one.greedy]).items()
    }

    def advantages(episode: EpisodeRewards) -> Steps:
        if episode.greedy or episode.group not in baselines:
            return spread(0.0, episode.rewards)
        return parted(discounted_sums(joined(episode.rewards), 1.0) - baselines[episode.group], episode.rewards)

    return [EpisodeAdvantages(advantages(episode)) for episode in episodes]
