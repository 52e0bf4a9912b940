"""Which streams and shared consumers a run has, as values. Creating them is `bus.jetstream`'s work.

TASKS         work queue, one copy a task, refuses more             browser workers
EPISODES<k>   the chains; accepted actions republished              truth of what happened
STEPS         memory work queue of wake-ups, short age              policy workers
TRAJECTORIES  one record an episode: judges share a consumer, anyone may read along
JUDGED        create-only                                           trainer, feeder, monitor
CHECKPOINTS   create-only                                           policy workers
HEARTBEATS    memory, newest a worker, 15 s
LEASES        newest claim of every lease
ADVISORIES    dead letters, and the server's notices of exhausted deliveries
"""

from dataclasses import dataclass
from typing import Literal

from bus.ports import WorkQueue
from bus.subjects import Subjects
from schemas.config import BusConfig
from schemas.ids import WorkerId
from schemas.messages import Split

_MINUTE = 60.0
_HEARTBEAT_AGE_S = 15.0
_STEP_AGE_S = 120.0
_NEVER = -1
"""Unlimited deliveries: whoever handles the message decides when to give up, and says so on the chain."""


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream, in the server's own terms."""

    name: str
    subjects: tuple[str, ...]
    retention: Literal["limits", "workqueue"] = "limits"
    storage: Literal["file", "memory"] = "file"
    max_age_s: float = 0.0
    max_msgs_per_subject: int = -1
    discard_new: bool = False
    replicas: int = 1
    allow_direct: bool = True
    republish: tuple[str, str] | None = None
    """Source filter and destination of accepted records."""


def streams(subjects: Subjects, config: BusConfig) -> tuple[StreamSpec, ...]:
    run, replicas = subjects.run, config.replicas
    results_s, episodes_s = config.results_max_age_s, config.episodes_max_age_s
    chains = tuple(
        StreamSpec(
            name=subjects.episodes(shard),
            subjects=(f"{run}.ep.{shard}.>",),
            max_age_s=episodes_s,
            replicas=replicas,
            republish=(
                f"{run}.ep.{shard}.*.*.act.*",
                f"{run}.live.{shard}." + "{{wildcard(1)}}.{{wildcard(2)}}.act.{{wildcard(3)}}",
            ),
        )
        for shard in range(subjects.num_shards)
    )
    return (
        *chains,
        StreamSpec(
            name=subjects.tasks,
            subjects=(f"{run}.task.*.*",),
            retention="workqueue",
            max_msgs_per_subject=1,
            discard_new=True,
            replicas=replicas,
        ),
        StreamSpec(
            name=subjects.steps,
            subjects=(f"{run}.step.>",),
            retention="workqueue",
            storage="memory",
            max_age_s=_STEP_AGE_S,
            max_msgs_per_subject=1,
            discard_new=True,
            replicas=replicas,
        ),
        StreamSpec(name=subjects.trajectories, subjects=(f"{run}.trajectory.*.*",), max_age_s=results_s, replicas=replicas),
        StreamSpec(name=subjects.judged, subjects=(f"{run}.judged.*.*.*",), max_age_s=results_s, replicas=replicas),
        StreamSpec(name=subjects.checkpoints, subjects=(f"{run}.checkpoint.*",), max_age_s=results_s, replicas=replicas),
        StreamSpec(
            name=subjects.heartbeats,
            subjects=(f"{run}.heartbeat.*.*",),
            storage="memory",
            max_age_s=_HEARTBEAT_AGE_S,
            max_msgs_per_subject=1,
        ),
        StreamSpec(name=subjects.positions, subjects=(f"{run}.position.*",), max_msgs_per_subject=1, replicas=replicas),
        StreamSpec(name=subjects.leases, subjects=(f"{run}.lease.*",), max_msgs_per_subject=1, replicas=replicas),
        StreamSpec(
            name=subjects.advisories,
            subjects=(f"{run}.dead.*", f"{run}.resent.*", *_notices(subjects)),
            max_age_s=7 * 86400.0,
            replicas=replicas,
        ),
    )


def _notices(subjects: Subjects) -> tuple[str, ...]:
    """The server's own notices about the streams that workers share."""
    return tuple(
        f"$JS.EVENT.ADVISORY.CONSUMER.{kind}.{stream}.>"
        for kind in ("MAX_DELIVERIES", "MSG_TERMINATED")
        for stream in (subjects.tasks, subjects.steps, subjects.trajectories)
    )


def task_queue(subjects: Subjects, config: BusConfig, split: Split) -> WorkQueue:
    """Episodes of one split, shared by all browser workers."""
    return WorkQueue(
        stream=subjects.tasks,
        name=f"browsers_{split.value}",
        subject_filters=(f"{subjects.run}.task.{split.value}.*",),
        ack_wait_s=config.task_ack_wait_s,
        max_deliver=_NEVER,
        max_ack_pending=20_000,
    )


def step_queue(subjects: Subjects, config: BusConfig, split: Split) -> WorkQueue:
    """Observations that any policy worker may answer."""
    return WorkQueue(
        stream=subjects.steps,
        name=f"policies_{split.value}",
        subject_filters=(f"{subjects.run}.step.{split.value}.any.>",),
        ack_wait_s=config.step_ack_wait_s,
        max_deliver=_NEVER,
        max_ack_pending=20_000,
    )


def own_step_queue(subjects: Subjects, config: BusConfig, worker: WorkerId) -> WorkQueue:
    """Observations of episodes that this policy worker answered before."""
    return WorkQueue(
        stream=subjects.steps,
        name=f"policy_{worker}",
        subject_filters=tuple(f"{subjects.run}.step.{split.value}.to.{worker}.>" for split in Split),
        ack_wait_s=config.step_ack_wait_s,
        max_deliver=_NEVER,
        inactive_s=_MINUTE,
    )


def trajectory_queue(subjects: Subjects, config: BusConfig, rubric: str) -> WorkQueue:
    """Finished trajectories, shared by all judge workers of one rubric."""
    return WorkQueue(
        stream=subjects.trajectories,
        name=f"judges_{rubric}",
        subject_filters=(f"{subjects.run}.trajectory.*.*",),
        ack_wait_s=config.judge_ack_wait_s,
        max_deliver=_NEVER,
        max_ack_pending=20_000,
    )


def shared_queues(subjects: Subjects, config: BusConfig) -> tuple[WorkQueue, ...]:
    """Queues that exist before any worker does, so that nothing queued early is missed."""
    splits = tuple(Split)
    return (
        *(task_queue(subjects, config, split) for split in splits),
        *(step_queue(subjects, config, split) for split in splits),
    )
