"""Defines the feeder's memory: what it has to know for as long as its run lasts, whatever else has aged out."""

import msgspec

from schemas.ids import GroupId, PolicyVersion, TaskId
from schemas.messages.structs import Message, Struct
from schemas.messages.task import Task
from schemas.ranges import Count, Episode, Real, Share, Version, Whole


class FedEpisode(Struct, frozen=True, array_like=True):
    """A training episode on its way from its admission to the version that consumes it."""

    episode: Episode
    ended_seq: Count = 0
    """Of its end on TRAJECTORIES; 0: it is under way."""
    judged_seq: Count = 0
    """Of its judgement on JUDGED; 0: there is none yet."""


class SchedulePlace(Struct, frozen=True):
    """Where the endless order of training episodes stands: in front of the next one."""

    order: str = ""
    """Of what the order was drawn: tasks, sampler and seed. Another one begins with the next round."""
    index: Count = 0
    round: Count = 0
    position: Count = 0
    """Of the task in the round."""
    member: Count = 0
    begun: GroupId = GroupId("")
    """The latest group of which a member was admitted."""
    drawn: tuple[TaskId, ...] = ()
    """The tasks of the round, where results decided on them."""
    results_seq: Count = 0
    """See `Task.results_seq`."""


class EvaluationRound(Struct, frozen=True):
    """A version's evaluation that is not complete yet."""

    version: Version
    num_episodes: Count
    num_admitted: Count = 0
    missing: tuple[Episode, ...] = ()
    """Admitted, and not judged."""
    num_scored: Count = 0
    num_successes: Count = 0
    total_reward: Real = 0.0


class OpenGroup(Struct, frozen=True, array_like=True):
    group: GroupId
    rewards: tuple[Real | None, ...]
    is_lost: bool = False
    """A member will never be judged, so it will never be complete for the trainer."""


class RefillMemory(Struct, frozen=True):
    """Groups of training, as far as admission in place of those without variance asks for them."""

    open: tuple[OpenGroup, ...] = ()
    num_before: Count = 0
    """Complete groups up to `before_seq`, and all that were lost."""
    before_seq: Count = 0
    complete: tuple[Count, ...] = ()
    """Sequences on JUDGED with which later ones became complete."""
    in_vain: tuple[Count, ...] = ()
    """Those of groups without variance."""


class FeederMemory(Message, frozen=True, tag="feeding/1"):
    """Everything that the feeder which takes over has to know. The newest counts, and only its holder may write the next.

    It is written before what it speaks of is begun, and its size is bounded by what is under way.
    """

    holder: str
    """A random token of the feeder that wrote it."""
    place: SchedulePlace = SchedulePlace()
    num_admitted: Count = 0
    """Training episodes in all, without those that were given up."""
    num_accepted: Count = 0
    """Those of them that were judged."""
    episodes: tuple[FedEpisode, ...] = ()
    """Admitted, and not consumed by a version; where nothing is trained, not judged."""
    intended: tuple[Task, ...] = ()
    """The latest to be admitted: whether all of them were, nobody knows."""
    intended_seq: Count = 0
    """The newest end on TRAJECTORIES by then: theirs are behind it."""
    intended_chains: dict[str, Count] = msgspec.field(default_factory=dict)
    """The newest record by then of each EPISODES stream that holds one of them, by stream: theirs are behind it."""
    rounds: tuple[EvaluationRound, ...] = ()
    rounds_through: Whole = -1
    """The evaluation round of every version up to this one was begun; those that do not stand in `rounds` are complete."""
    version: Version = PolicyVersion(0)
    consumed: tuple[tuple[Count, Count], ...] = ()
    """Of the newest versions: `Checkpoint.judged_seq`."""
    sequences: dict[str, Count] = msgspec.field(default_factory=dict)
    """By stream: everything up to this sequence is contained here."""
    results_seq: Count = 0
    """Every result up to this sequence on JUDGED is contained in the `TaskResults`."""
    refill: RefillMemory = RefillMemory()
    finished: bool = False
    """Nothing is left to be admitted, and nothing is under way: the run is over, unless a feeder is told to go on."""


class GroupResult(Struct, frozen=True, array_like=True):
    """A group that is being judged: one attempt at its task."""

    group: GroupId
    task: TaskId
    success: bool
    """Of everything that was scored."""
    num_judged: Count
    num_scored: Count
    num_solved: Count = 0


class TaskResults(Message, frozen=True, tag="results/1"):
    """How often some of the tasks were tried and solved: what sampling by results goes by."""

    part: Count
    """Tasks are divided by the CRC-32 of their names."""
    seq: Count
    """On JUDGED: everything up to it is contained."""
    solved: tuple[TaskId, ...] = ()
    failures: dict[TaskId, Count] = msgspec.field(default_factory=dict)
    """Attempts that failed, of tasks that were never solved."""
    pass_rates: dict[TaskId, Share] = msgspec.field(default_factory=dict)
    """Share of an attempt's episodes that succeeded; each attempt counts half of all before it."""
    attempted: dict[TaskId, Count] = msgspec.field(default_factory=dict)
    """On JUDGED: where a task's latest attempt ended."""
    open: tuple[GroupResult, ...] = ()
