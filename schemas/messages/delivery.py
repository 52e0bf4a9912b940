"""Defines the messages about deliveries and about how far readers have come."""

import msgspec

from schemas.ids import WorkerId
from schemas.messages.structs import Message
from schemas.messages.worker import Role
from schemas.ranges import Count, Moment, Worker


class DeadLetter(Message, frozen=True, tag="dead/1"):
    """An input that will not be delivered again, with the reason."""

    stream: str
    consumer: str
    seq: Count
    subject: str
    reason: str
    data: bytes = b""
    worker: Worker = WorkerId("")


class LetterResent(Message, frozen=True, tag="resent/1"):
    """A dead letter was put back where it came from."""

    letter_seq: Count
    """Sequence of the letter on ADVISORIES."""
    stream: str
    seq: Count
    """Sequence of the copy."""
    at: Moment
    """Unix seconds."""


class Fault(Message, frozen=True, tag="fault/1"):
    """An error that nobody foresaw, as a worker met it at one item."""

    role: Role
    worker: Worker
    item: str
    """What was being handled, as in `episode/attempt/step`; one token of a subject."""
    number: Count
    """Which of the item's errors it is, from 1, whoever met the earlier ones."""
    error: str
    """As in `KeyError: 'price'`."""
    place: str
    """Where it was raised, as in `judges/mine.py:12 in right_price`."""
    at: Moment
    """Unix seconds."""


class Position(Message, frozen=True, tag="position/1"):
    """How far a durable reader has come. Only the process that wrote the newest one may write the next."""

    name: str
    holder: str
    """A random token of the reading process."""
    sequences: dict[str, Count]
    """By stream: everything up to this sequence is handled."""
    stored_at: dict[str, Moment] = msgspec.field(default_factory=dict)
    """By stream: Unix seconds at which the server stored the record with that sequence."""
    since_s: Moment | None = None
    """Unix seconds at which the streams without a sequence begin."""
    at: Moment = 0.0
    """Unix seconds."""
