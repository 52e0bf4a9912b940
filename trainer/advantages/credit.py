"""From the judged episodes of complete groups to what every token of them was worth. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.ids import GroupId
from schemas.messages import RecordRef
from schemas.objective_config import ObjectiveConfig
from trainer.advantages import EpisodeRewards
from trainer.advantages.rewards import less_divergence, token_rewards
from trainer.episodes.groups import Group, Member
from trainer.estimators import configured_estimator, traits_of

_NOTHING = 1e-8
"""Advantages that small are zero but for rounding."""
Arrays = Mapping[RecordRef, np.ndarray]
"""By step: (completion,)."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A member of a complete group, with the steps of it that are trained on."""

    member: Member
    group: GroupId
    """Names the group among those of one iteration."""
    steps: Mapping[RecordRef, int] = field(default_factory=dict)
    """Completion tokens of each, in order."""


def episodes_of(groups: Sequence[Group], steps: Mapping[str, Mapping[RecordRef, int]]) -> list[Episode]:
    """Group by group. `steps`: by episode; greedy baselines have none.

    A task that was played more often than a group has members makes several groups, which are not compared with each other.
    """
    return [
        Episode(member, GroupId(f"{index}-{member.group}"), {} if member.greedy else steps.get(member.episode, {}))
        for index, group in enumerate(groups)
        for member in group.members
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Credit:
    """By step."""

    advantages: Arrays
    returns: Arrays
    """Empty without a critic."""

    @property
    def instructive(self) -> list[RecordRef]:
        """Steps with an advantage that is not zero."""
        return [ref for ref, array in self.advantages.items() if np.any(np.abs(array) > _NOTHING)]


def credit(
    episodes: Sequence[Episode], objective: ObjectiveConfig, *, proximal: Arrays, reference: Arrays, values: Arrays
) -> Credit:
    """Advantages as the objective estimates them; what it does not use of the arrays may be empty."""
    rewards = [_rewards(episode, objective, proximal, reference, values) for episode in episodes]
    advantages: dict[RecordRef, np.ndarray] = {}
    returns: dict[RecordRef, np.ndarray] = {}
    for episode, found in zip(episodes, configured_estimator(objective)(rewards), strict=True):
        advantages.update(zip(episode.steps, found.advantages, strict=True))
        if found.returns:
            returns.update(zip(episode.steps, found.returns, strict=True))
    return Credit(advantages, returns)


def _rewards(
    episode: Episode, objective: ObjectiveConfig, proximal: Arrays, reference: Arrays, values: Arrays
) -> EpisodeRewards:
    member, refs = episode.member, tuple(episode.steps)
    assert member.reward is not None
    placed = token_rewards(
        member.reward,
        list(episode.steps.values()),
        trained=[ref.step for ref in refs],
        step_rewards=member.step_rewards if objective.use_multi_turn_reward else (),
    )
    if objective.kl_reward_coef:
        placed = less_divergence(
            placed,
            tuple(proximal[ref] for ref in refs),
            tuple(reference[ref] for ref in refs),
            kind=objective.kl_reward_type,
            coef=objective.kl_reward_coef,
        )
    return EpisodeRewards(
        group=episode.group,
        reward=member.reward,
        rewards=placed,
        num_steps=member.num_steps,
        values=tuple(values[ref].astype(np.float64) for ref in refs) if traits_of(objective).critic else (),
        greedy=member.greedy,
    )
