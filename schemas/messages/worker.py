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
