"""REINFORCE++ whitened among tasks of one kind: a page that is seldom solved is not compared with easy ones."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.advantages import EpisodeRewards, Steps
from trainer.advantages.whitening import whitened
from trainer.estimators import estimator
from trainer.estimators.reinforce_plus_plus import ReinforcePlusPlus


@estimator("reinforce_plus_plus_by_kind", by_token=True, whitens=True)
@dataclass(frozen=True)
class ReinforcePlusPlusByKind(ReinforcePlusPlus):
    """Tasks of one subdomain are one kind (AgentRL's task advantage normalisation). A kind whose tokens have all earned the
    same teaches nothing."""

    def whitened(self, sums: Sequence[Steps], episodes: Sequence[EpisodeRewards]) -> list[Steps]:
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, episode in enumerate(episodes):
            places[episode.kind].append(place)
        found = dict[int, Steps]()
        for alike in places.values():
            found.update(zip(alike, whitened([sums[place] for place in alike]), strict=True))
        return [found[place] for place in range(len(episodes))]
