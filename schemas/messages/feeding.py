"""What a feeder has to know for as long as its run lasts, whatever else has aged out."""

import msgspec

from schemas.ids import EpisodeId, GroupId, PolicyVersion, TaskId
from schemas.messages.structs import Message, Struct
from schemas.messages.task import Task


class FedEpisode(Struct, frozen=True, array_like=True):
    """A training episode on its way from its admission to the version that consumes it."""

    episode: EpisodeId
    ended_seq: int = 0
    """Of its end on TRAJECTORIES; 0: it is under way."""
    judged_seq: int = 0
    """Of its judgement on JUDGED; 0: there is none yet."""


class SchedulePlace(Struct, frozen=True):
    """Where the endless order of training episodes stands: in front of the next one."""

    order: str = ""
    """Of what the order was drawn: tasks, sampler and seed. Another one begins with the next round."""
    index: int = 0
    round: int = 0
    position: int = 0
    """Of the task in the round."""
    member: int = 0
    begun: GroupId = GroupId("")
    """The latest group of which a member was admitted."""
    drawn: tuple[TaskId, ...] = ()
    """The tasks of the round, where results decided on them."""
    results_seq: int = 0
    """See `Task.results_seq`."""


class EvaluationRound(Struct, frozen=True):
    """A version's evaluation that is not complete yet."""

    version: PolicyVersion
    num_episodes: int
    num_admitted: int = 0
    missing: tuple[EpisodeId, ...] = ()
    """Admitted, and not judged."""
    num_scored: int = 0
    num_successes: int = 0
    total_reward: float = 0.0


class OpenGroup(Struct, frozen=True, array_like=True):
    group: GroupId
    rewards: tuple[float | None, ...]


class RefillMemory(Struct, frozen=True):
    """Groups of training, as far as admission in place of those without variance asks for them."""

    open: tuple[OpenGroup, ...] = ()
    num_before: int = 0
    """Complete groups up to `before_seq`."""
    before_seq: int = 0
    complete: tuple[int, ...] = ()
    """Sequences on JUDGED with which later ones became complete."""
    in_vain: tuple[int, ...] = ()
    """Those of groups without variance."""


class FeederMemory(Message, frozen=True, tag="feeding/1"):
    """Everything that the feeder which takes over has to know. The newest counts, and only its holder may write the next.

    It is written before what it speaks of is begun, and its size is bounded by what is under way.
    """

    holder: str
    """A random token of the feeder that wrote it."""
    place: SchedulePlace = SchedulePlace()
    num_admitted: int = 0
    """Training episodes in all, without those that were given up."""
    num_accepted: int = 0
    """Those of them that were judged."""
    episodes: tuple[FedEpisode, ...] = ()
    """Admitted, and not consumed by a version; where nothing is trained, not judged."""
    intended: tuple[Task, ...] = ()
    """The latest to be admitted: whether all of them were, nobody knows."""
    intended_seq: int = 0
    """The newest end on TRAJECTORIES by then: theirs are behind it."""
    rounds: tuple[EvaluationRound, ...] = ()
    rounds_through: int = -1
    """The evaluation round of every version up to this one was begun; those that do not stand in `rounds` are complete."""
    version: PolicyVersion = PolicyVersion(0)
    consumed: tuple[tuple[int, int], ...] = ()
    """Of the newest versions: `Checkpoint.judged_seq`."""
    sequences: dict[str, int] = msgspec.field(default_factory=dict)
    """By stream: everything up to this sequence is contained here."""
    results_seq: int = 0
    """Every result up to this sequence on JUDGED is contained in the `TaskResults`."""
    refill: RefillMemory = RefillMemory()


class GroupResult(Struct, frozen=True, array_like=True):
    """A group that is being judged: one attempt at its task."""

    group: GroupId
    task: TaskId
    success: bool
    """Of everything that was scored."""
    num_judged: int
    num_scored: int


class TaskResults(Message, frozen=True, tag="results/1"):
    """How often some of the tasks were tried and solved: what sampling by results goes by."""

    part: int
    """Tasks are divided by the CRC-32 of their names."""
    seq: int
    """On JUDGED: everything up to it is contained."""
    solved: tuple[TaskId, ...] = ()
    failures: dict[TaskId, int] = msgspec.field(default_factory=dict)
    """Attempts that failed, of tasks that were never solved."""
    open: tuple[GroupResult, ...] = ()
