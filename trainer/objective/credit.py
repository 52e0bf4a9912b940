"""From the judged episodes of complete groups to what every token of them was worth. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.ids import EpisodeId, GroupId
from schemas.messages import RecordRef
from schemas.objective_config import ObjectiveConfig
from trainer.advantages import EpisodeRewards
from trainer.advantages.rewards import RewardRules
from trainer.episodes.episode_steps import EpisodeSteps
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
    anchors: Mapping[RecordRef, str] = field(default_factory=dict)
    """Of each, what its page looked like."""


def episodes_of(groups: Sequence[Group], steps: Mapping[EpisodeId, EpisodeSteps]) -> list[Episode]:
    """Group by group. `steps`: by episode; greedy baselines have none.

    A task that was played more often than a group has members makes several groups, which are not compared with each other.
    """
    nothing = EpisodeSteps()
    return [
        Episode(
            member,
            GroupId(f"{index}-{group.members[0].group}"),
            dict(zip(found.usable, found.lengths, strict=True)),
            dict(zip(found.usable, found.anchors, strict=True)),
        )
        for index, group in enumerate(groups)
        for member in group.members
        for found in [nothing if member.greedy else steps.get(member.episode, nothing)]
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
    episodes: Sequence[Episode],
    objective: ObjectiveConfig,
    *,
    proximal: Arrays,
    reference: Arrays,
    values: Arrays,
    max_new_tokens: int = 0,
) -> Credit:
    """Advantages as the objective estimates them; what it does not use of the arrays may be empty.

    Args:
        max_new_tokens: of one answer, for `overlong_buffer_len`.
    """
    placed = RewardRules(objective, max_new_tokens)
    critic = traits_of(objective).critic
    rewards = [_rewards(episode, placed, proximal, reference, values if critic else None) for episode in episodes]
    advantages: dict[RecordRef, np.ndarray] = {}
    returns: dict[RecordRef, np.ndarray] = {}
    for episode, found in zip(episodes, configured_estimator(objective)(rewards), strict=True):
        for ref, taught in zip(episode.steps, found.advantages, strict=True):
            # An earlier success may stand in two groups of its task.
            advantages[ref] = advantages[ref] + taught if ref in advantages else taught
        if found.returns:
            returns.update(zip(episode.steps, found.returns, strict=True))
    return Credit(advantages, returns)


def _rewards(
    episode: Episode, rules: RewardRules, proximal: Arrays, reference: Arrays, values: Arrays | None
) -> EpisodeRewards:
    member, refs = episode.member, tuple(episode.steps)
    assert member.reward is not None
    placed = rules.placed(
        member.reward, list(episode.steps.values()), trained=[ref.step for ref in refs], step_rewards=member.step_rewards
    )
    if rules.needs_reference:
        placed = rules.less_divergence(placed, tuple(proximal[ref] for ref in refs), tuple(reference[ref] for ref in refs))
    return EpisodeRewards(
        group=episode.group,
        reward=rules.adjusted(member.reward),
        rewards=placed,
        num_steps=member.num_steps,
        values=tuple(values[ref].astype(np.float64) for ref in refs) if values is not None else (),
        anchors=tuple(episode.anchors.get(ref, "") for ref in refs),
        greedy=member.greedy,
        success=member.success,
        cut_off=member.cut_off,
        kind=member.kind,
    )
