"""Who is at work, and how they do."""

import enum

import msgspec

from schemas.ids import WorkerId
from schemas.messages.structs import Message


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
    worker: WorkerId
    state: str
    """One word for a person: starting, waiting, working, loading, behind, training, draining."""
    at: float
    """Unix seconds."""
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    note: str = ""
