"""Advantage estimators, one a file: from rewards to what every sampled token was worth, float64 on the CPU.

An estimator sees whole groups of one iteration and returns, for every episode and step, one number a completion token. Where a
formula knows only episodes or steps, all tokens of a step have the same. Masks and aggregation come later.

    @estimator("centred", compares=True)
    def centred(episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
        mean = np.mean([episode.score for episode in episodes])
        return [EpisodeAdvantages(spread(episode.score - mean, episode.rewards)) for episode in episodes]
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from schemas.extensions import ESTIMATORS, Part
from schemas.objective_config import ObjectiveConfig
from schemas.part_settings import configured
from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.scaling import Scaled

Made = TypeVar("Made", bound=Callable[..., object])


class Estimator(Protocol):
    """With its settings."""

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]: ...


@dataclass(frozen=True)
class EstimatorTraits:
    """What feeder and trainer do for an estimator."""

    compares: bool = False
    """It compares the episodes of a group: groups have two members or more."""
    greedy_baseline: bool = False
    """Behind every group one more episode is played, greedily, and not trained on."""
    critic: bool = False
    """A value model is trained, and its values are in `EpisodeRewards.values`."""

    by_token: bool = False
    """It looks at what each token or step earned, not at the episode's score alone."""
    whitens: bool = False
    """Its advantages have mean 0 and variance 1 over the batch already."""

    def can_use(self, greedy: Iterable[bool]) -> bool:
        """Whether something can be learnt from a group of these members. `greedy`: whether each is a baseline."""
        members = list(greedy)
        num_sampled = members.count(False)
        return num_sampled >= 1 + self.compares and (not self.greedy_baseline or num_sampled < len(members))


def estimator(
    name: str,
    *,
    compares: bool = False,
    greedy_baseline: bool = False,
    critic: bool = False,
    by_token: bool = False,
    whitens: bool = False,
) -> Callable[[Made], Made]:
    """Declares an estimator: a function, or a class that is made with its settings and then called."""
    traits = EstimatorTraits(
        compares=compares, greedy_baseline=greedy_baseline, critic=critic, by_token=by_token, whitens=whitens
    )
    return lambda made: ESTIMATORS.declare(name, made, traits)


def estimator_part(config: ObjectiveConfig) -> Part[Callable[..., object], EstimatorTraits]:
    """Raises `ConfigurationError` where there is none of that name, as of `none`: imitation knows no advantages."""
    return ESTIMATORS.find(config.adv_estimator)


def traits_of(config: ObjectiveConfig) -> EstimatorTraits:
    return EstimatorTraits() if config.imitates else estimator_part(config).traits


def num_members(config: ObjectiveConfig) -> int:
    """Episodes that are admitted of every training task: its group, and a greedy baseline behind it."""
    return config.group_size + traits_of(config).greedy_baseline


def configured_estimator(config: ObjectiveConfig) -> Estimator:
    """With all its settings, and the factors that are put on whichever estimator's advantages."""
    plain: Estimator = configured(estimator_part(config).made, vars(config) | config.settings)
    return Scaled(plain, config)
