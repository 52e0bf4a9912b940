"""Declares a run's streams and shared consumers, as values. Creating them is an administrator's step (`bus.jetstream`).

TASKS         work queue, one copy per task, refuses more             browser workers
EPISODES<k>   the chains; accepted actions republished              truth of what happened
STEPS         work queue of wake-ups, short age                     policy workers
TRAJECTORIES  one record per episode: judges share a consumer, anyone may read along
JUDGED        create-only                                           trainer, feeder, monitor
CALLS         create-only: what judges' models answered             judges
CHECKPOINTS   create-only, for ever                                 policy workers, trainer
WEIGHTS       the newest versions' files in chunks, purged by file  policy workers without the trainer's disk
SERVED        newest word of every policy on what it serves          feeder, policy workers
HEARTBEATS    newest per worker, and per node of a training job that has several; short age
POSITIONS     newest position of every named consumer
LEASES        newest claim of every lease
BLOCKLIST     newest word on every site that blocked the agent      feeder
TURNS         who has asked a site for a page in the last minute    browser workers
FEEDING       newest word on what was admitted, and what came of it feeder; workers that wait: whether the run is over
              and on what judges' calls came to                     judges
ADVISORIES    dead letters, errors that nobody foresaw, and the server's notices of exhausted deliveries

Only age removes a record, from WEIGHTS the trainer, and from TURNS who wrote it. A stream whose limits are reached refuses
(`StreamFull`), and its writers wait; where the newest of a subject is all that counts (SERVED, HEARTBEATS, POSITIONS, LEASES,
BLOCKLIST, TURNS, FEEDING) it replaces the one before.

What a role needs to go on stands where nothing ages: CHECKPOINTS, SERVED, POSITIONS, BLOCKLIST, FEEDING. Chains and results
may be gone before anybody comes back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bus.ports import WorkQueue
from bus.subjects import Subjects
from schemas.bus_config import BusConfig
from schemas.ids import subject_token
from schemas.messages import Split

_GB = 1_000_000_000
_NEVER = -1
"""Unlimited deliveries: whoever handles the message decides when to give up, and says so on the chain."""
_TURN_S = 60.0
"""A site's limit is so many turns a minute."""
NUM_SHARDS = "millrace.num_shards"
"""Metadata of every stream: readers that know only the run's name learn from it where an episode's chain is."""


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream, in the server's own terms."""

    name: str
    subjects: tuple[str, ...]
    retention: Literal["limits", "workqueue"] = "limits"
    max_age_s: float = 0.0
    max_bytes: int = -1
    max_msgs: int = -1
    max_msgs_per_subject: int = -1
    discard: Literal["new", "old"] = "new"
    """What goes when a limit is reached: the new message is refused, or the oldest is dropped."""
    discard_new_per_subject: bool = False
    """Whether a subject that holds its `max_msgs_per_subject` refuses more; otherwise its oldest is replaced."""
    deny_delete: bool = False
    """No one may delete a record; cannot be taken back."""
    replicas: int = 1
    allow_direct: bool = True
    republish: tuple[str, str] | None = None
    """Source filter and destination of accepted records."""
    screenshots: bool = False
    """Records are large: whoever follows the stream asks now and then instead of hearing each record a second time."""
    metadata: tuple[tuple[str, str], ...] = ()


def streams(subjects: Subjects, config: BusConfig) -> tuple[StreamSpec, ...]:
    specs = (*_chains(subjects, config), *_queues(subjects, config), *_results(subjects, config), *_newest(subjects, config))
    return tuple(replace(spec, metadata=((NUM_SHARDS, str(subjects.num_shards)),)) for spec in specs)


def _chains(subjects: Subjects, config: BusConfig) -> tuple[StreamSpec, ...]:
    run = subjects.run
    return tuple(
        StreamSpec(
            name=subjects.episodes(shard),
            subjects=(f"{run}.ep.{shard}.>",),
            max_age_s=config.episodes_max_age_s,
            max_bytes=_bytes(config.episodes_max_gb),
            deny_delete=True,
            replicas=config.replicas,
            republish=(
                f"{run}.ep.{shard}.*.*.act.*",
                f"{run}.live.{shard}." + "{{wildcard(1)}}.{{wildcard(2)}}.act.{{wildcard(3)}}",
            ),
            screenshots=True,
        )
        for shard in range(subjects.num_shards)
    )


def _queues(subjects: Subjects, config: BusConfig) -> tuple[StreamSpec, ...]:
    tasks = StreamSpec(
        name=subjects.tasks,
        subjects=(f"{subjects.run}.task.*.*",),
        retention="workqueue",
        max_msgs=config.max_queued_tasks or -1,
        max_msgs_per_subject=1,
        discard_new_per_subject=True,
        replicas=config.replicas,
    )
    steps = StreamSpec(
        name=subjects.steps,
        subjects=(f"{subjects.run}.step.>",),
        retention="workqueue",
        max_age_s=config.steps_max_age_s,
        max_msgs_per_subject=1,
        discard_new_per_subject=True,
        replicas=config.replicas,
    )
    return tasks, steps


def _results(subjects: Subjects, config: BusConfig) -> tuple[StreamSpec, ...]:
    run, replicas = subjects.run, config.replicas
    kept = (
        (subjects.trajectories, f"{run}.trajectory.*.*"),
        (subjects.judged, f"{run}.judged.*.*.*"),
        (subjects.calls, f"{run}.call.*.*.*.*"),
    )
    return (
        *(
            StreamSpec(
                name=name,
                subjects=(subject,),
                max_age_s=config.results_max_age_s,
                max_bytes=_bytes(config.results_max_gb),
                deny_delete=True,
                replicas=replicas,
            )
            for name, subject in kept
        ),
        StreamSpec(name=subjects.checkpoints, subjects=(f"{run}.checkpoint.*",), deny_delete=True, replicas=replicas),
        StreamSpec(
            name=subjects.weight_chunks,
            subjects=(f"{run}.weights.*.*",),
            max_bytes=_bytes(config.weights_max_gb),
            max_msgs_per_subject=1,
            replicas=replicas,
            screenshots=True,
        ),
        StreamSpec(
            name=subjects.advisories,
            subjects=(f"{run}.dead.*", f"{run}.resent.*", f"{run}.fault.*.*.*", *_notices(subjects)),
            max_age_s=config.advisories_max_age_s,
            replicas=replicas,
        ),
    )


def _newest(subjects: Subjects, config: BusConfig) -> tuple[StreamSpec, ...]:
    """Streams of which the newest record a subject counts."""
    run = subjects.run
    heartbeats = StreamSpec(
        name=subjects.heartbeats,
        subjects=(f"{run}.heartbeat.*.*", f"{run}.job.*"),
        max_age_s=config.heartbeats_max_age_s,
        max_msgs_per_subject=1,
        discard="old",
        replicas=config.replicas,
    )
    # Without an age: a policy that serves one version for weeks has said so once.
    served = StreamSpec(
        name=subjects.served,
        subjects=(f"{run}.served.*",),
        max_msgs_per_subject=1,
        discard="old",
        replicas=config.replicas,
    )
    positions = StreamSpec(
        name=subjects.positions,
        subjects=(f"{run}.position.*",),
        max_msgs_per_subject=1,
        discard="old",
        replicas=config.replicas,
    )
    leases = StreamSpec(
        name=subjects.leases,
        subjects=(f"{run}.lease.*",),
        max_msgs_per_subject=1,
        discard="old",
        replicas=config.replicas,
    )
    blocklist = StreamSpec(
        name=subjects.blocklist,
        subjects=(f"{run}.blocked.*",),
        max_msgs_per_subject=1,
        discard="old",
        replicas=config.replicas,
    )
    turns = StreamSpec(
        name=subjects.turns,
        subjects=(f"{run}.turn.*.*.*.*",),
        max_age_s=_TURN_S,
        max_msgs_per_subject=1,
        discard="old",
        replicas=config.replicas,
    )
    feeding = StreamSpec(
        name=subjects.feeding,
        subjects=(f"{run}.feeding.>", subjects.spent),
        max_msgs_per_subject=1,
        discard="old",
        replicas=config.replicas,
    )
    return heartbeats, served, positions, leases, blocklist, turns, feeding


def _bytes(gigabytes: float) -> int:
    return int(gigabytes * _GB) or -1


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


def trajectory_queue(subjects: Subjects, config: BusConfig, rubric: str) -> WorkQueue:
    """Finished trajectories, shared by all judge workers of one rubric."""
    return WorkQueue(
        stream=subjects.trajectories,
        name=f"judges_{subject_token(rubric, what='rubric')}",
        subject_filters=(f"{subjects.run}.trajectory.*.*",),
        ack_wait_s=config.judge_ack_wait_s,
        max_deliver=_NEVER,
        max_ack_pending=20_000,
    )


def shared_queues(subjects: Subjects, config: BusConfig, rubrics: Sequence[str]) -> tuple[WorkQueue, ...]:
    """Every queue of a run; `rubrics` are those of its judges. They exist before any worker does: workers only join."""
    splits = tuple(Split)
    return (
        *(task_queue(subjects, config, split) for split in splits),
        *(step_queue(subjects, config, split) for split in splits),
        *(trajectory_queue(subjects, config, rubric) for rubric in rubrics),
    )
