"""Groups: the scores of the episodes of one task."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from schemas.ids import GroupId
from trainer.advantages import EpisodeRewards


def scores_by_group(episodes: Sequence[EpisodeRewards]) -> dict[GroupId, np.ndarray]:
    """float64, (episodes,) of each group; those without trained tokens count too."""
    scores: defaultdict[GroupId, list[float]] = defaultdict(list)
    for episode in episodes:
        scores[episode.group].append(episode.score)
    return {group: np.array(found) for group, found in scores.items()}


def pass_rates(episodes: Sequence[EpisodeRewards]) -> dict[GroupId, float]:
    """Of each group, the share of its sampled episodes that succeeded."""
    successes: defaultdict[GroupId, list[bool]] = defaultdict(list)
    for episode in episodes:
        if not episode.greedy:
            successes[episode.group].append(episode.success)
    return {group: sum(found) / len(found) for group, found in successes.items()}
