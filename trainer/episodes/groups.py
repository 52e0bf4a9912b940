"""Groups: episodes of one task that are compared with each other, assembled as their judgements arrive. Pure.

Invariant: which groups there are and which of them vary is a function of the judgements in their order alone. So the feeder
comes to the same as the trainer, and a trainer that was killed goes on with the same groups.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from schemas.ids import EpisodeId, GroupId, PolicyVersion, TaskId
from schemas.messages import Judgement, Outcome, RecordRef
from schemas.objective_config import ObjectiveConfig
from trainer.episodes.consumption import staleness
from trainer.estimators import traits_of
from trainer.group_variance import lacks_variance
from trainer.scores import is_success, score


class Member(msgspec.Struct, frozen=True):
    """What is kept of a judgement until its group is complete, in checkpoints too."""

    episode: EpisodeId
    group: GroupId
    attempt: int
    reward: float | None
    """None: nobody came to a verdict. It has arrived, and counts for nothing."""
    step_rewards: tuple[float, ...] = ()
    num_steps: int = 0
    num_observations: int = 0
    versions: tuple[PolicyVersion, ...] = ()
    """Oldest policy version of each step."""
    greedy: bool = False
    """A baseline that is not trained on."""
    success: bool = False
    cut_off: bool = False
    """The step cap or the time-out ended it."""
    task: TaskId = TaskId("")
    kind: str = ""
    """Of its task: domain and subdomain, or the task itself where it has none."""
    replayed: bool = False
    """An earlier success, which is never too old."""

    @classmethod
    def of(cls, judgement: Judgement) -> "Member":
        played, scored = judgement.trajectory, score(judgement)
        return cls(
            episode=judgement.episode,
            group=judgement.group,
            attempt=played.attempt,
            reward=scored.reward if scored else None,
            step_rewards=judgement.step_rewards,
            num_steps=played.num_steps,
            num_observations=played.num_observations,
            versions=played.versions,
            greedy=played.task.greedy,
            success=is_success(judgement),
            task=played.task.task,
            kind=f"{played.task.domain}/{played.task.subdomain}" if played.task.subdomain else played.task.task,
            cut_off=played.outcome in (Outcome.STEP_LIMIT, Outcome.TIMED_OUT),
        )

    @property
    def steps(self) -> tuple[RecordRef, ...]:
        """The answers."""
        return tuple(RecordRef(self.episode, self.attempt, "act", step) for step in range(self.num_steps))

    @property
    def observations(self) -> tuple[RecordRef, ...]:
        return tuple(RecordRef(self.episode, self.attempt, "obs", step) for step in range(self.num_observations))


@dataclass(frozen=True, slots=True)
class Group:
    """All that there will be of a group, in the order of arrival."""

    members: tuple[Member, ...]

    @property
    def varies(self) -> bool:
        """Whether there is anything to compare: scored members whose rewards differ."""
        return not lacks_variance([member.reward for member in self.members])


class Groups:
    """Those that are not complete yet. A judgement that comes again while its group is incomplete changes nothing.

    Example: with groups of two, members of groups a, b, a complete a, and the one of b is carried over.
    """

    def __init__(self, size: int, carried: Iterable[Member] = ()) -> None:
        """`size`: episodes of a group; `carried`: what another object called so."""
        self._size = size
        self._incomplete: dict[GroupId, dict[EpisodeId, Member]] = {}
        for member in carried:
            self.arrive(member)

    @property
    def carried(self) -> tuple[Member, ...]:
        return tuple(member for members in self._incomplete.values() for member in members.values())

    def arrive(self, member: Member) -> Group | None:
        """Takes a member in, whatever its verdict; returns its group when that is complete with it."""
        members = self._incomplete.setdefault(member.group, {})
        members.setdefault(member.episode, member)
        if len(members) < self._size:
            return None
        del self._incomplete[member.group]
        return Group(tuple(members.values()))

    def close(self) -> list[Group]:
        """At the end of a pass over stored episodes: the incomplete groups with what there is of them."""
        closed = [Group(tuple(members.values())) for members in self._incomplete.values()]
        self._incomplete.clear()
        return closed


class Refilled:
    """The measure of an iteration with refill: it ends when the complete groups that vary hold `size` episodes, or when all
    complete ones hold `max_refill` times as many. The feeder counts the same, so none is waited for that is not admitted.
    """

    def __init__(self, size: int, objective: ObjectiveConfig) -> None:
        self._missing = size
        self._allowed = objective.max_refill * size

    def is_last(self, completed: Group | None) -> bool:
        """Hears of every judgement of the iteration; `completed`: the group that is complete with it."""
        if completed is not None:
            self._allowed -= len(completed.members)
            self._missing -= len(completed.members) if completed.varies else 0
        return self._missing <= 0 or self._allowed <= 0


@dataclass(frozen=True, slots=True)
class Intended:
    """What an iteration makes of the groups that it completed."""

    groups: tuple[Group, ...]
    """Fresh scored members, greedy baselines among them; at least one in each is to be trained on."""
    num_dropped: int
    """Groups left out because their rewards are all equal."""
    num_stale: int
    """Members left out of their groups because they had become too old."""
    num_collapsed: int
    """Members left out because a version that training returned from played in them."""
    num_unscored: int
    """Members without a verdict, as of episodes that a site blocked: they count for nothing, and nobody takes their place."""
    num_short: int
    """Groups that are compared, or trained on, with fewer members than they began with."""
    num_unusable: int
    """Groups without enough scored and fresh members: one to train on, two where they are compared, a baseline where one is
    needed."""

    @property
    def trained(self) -> list[Member]:
        return [member for group in self.groups for member in group.members if not member.greedy]


def intend(
    groups: Iterable[Group],
    objective: ObjectiveConfig,
    *,
    version: int,
    bound: int | None,
    plays_for: Callable[[Member], bool] = lambda _: True,
) -> Intended:
    """Sorts complete groups, for a trainer that holds `version`; without a `bound` no member is too old.

    `plays_for`: False for members that must not be trained on, whatever their age.
    """
    kept: list[Group] = []
    num_dropped = num_stale = num_collapsed = num_unscored = num_short = num_unusable = 0
    for group in groups:
        num_unscored += sum(member.reward is None for member in group.members)
        if objective.dynamic_sampling != "off" and not group.varies:
            num_dropped += 1
            continue
        scored = [member for member in group.members if member.reward is not None]
        counted = [member for member in scored if plays_for(member)]
        fresh = tuple(member for member in counted if bound is None or member.replayed or staleness(member, version) <= bound)
        num_collapsed += len(scored) - len(counted)
        num_stale += len(counted) - len(fresh)
        if traits_of(objective).can_use(member.greedy for member in fresh):
            kept.append(Group(fresh))
            num_short += len(fresh) < len(group.members)
        else:
            num_unusable += 1
    return Intended(tuple(kept), num_dropped, num_stale, num_collapsed, num_unscored, num_short, num_unusable)
