"""Defines heartbeats: who is at work, and how they do."""

import enum

import msgspec

from schemas.messages.structs import Message
from schemas.ranges import Moment, Real, Worker


class Role(enum.Enum):
    SERVER = "server"
    FEEDER = "feeder"
    BROWSER = "browser"
    POLICY = "policy"
    JUDGE = "judge"
    TRAINER = "trainer"
    MONITOR = "monitor"
    ARCHIVER = "archiver"


class JobState(enum.Enum):
    """Of one node of a training job."""

    READY = "ready"
    RUNNING = "running"
    FINISHED = "finished"
    """Rank 0 has ended, and the job with it."""
    LEFT = "left"


class JobNode(Message, frozen=True, tag="job_node/1"):
    """What one node of a training job does that has several. Ages out by itself."""

    node: Worker
    state: JobState
    generation: int = 0
    """How often the job was begun; of a node that does not run, the last one that it ran in."""
    address: str = ""
    """Of the first node while it runs: where this generation's ranks meet, host:port."""
    exit_code: int = 0
    """Of the first node when it has finished."""


class Heartbeat(Message, frozen=True, tag="heartbeat/1"):
    """A worker is alive. Ages out by itself."""

    role: Role
    worker: Worker
    state: str
    """One word for a person: starting, waiting, working, loading, behind, training, draining."""
    at: Moment
    """Unix seconds."""
    metrics: dict[str, Real] = msgspec.field(default_factory=dict)
    note: str = ""
    skipped: str = ""
    """The record that it left out last, with the reason; `metrics` counts them as `records_skipped`."""
