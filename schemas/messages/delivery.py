"""What became of deliveries, and how far readers have come."""

import msgspec

from schemas.ids import WorkerId
from schemas.messages.structs import Message
from schemas.messages.worker import Role


class DeadLetter(Message, frozen=True, tag="dead/1"):
    """An input that will not be delivered again, with the reason."""

    stream: str
    consumer: str
    seq: int
    subject: str
    reason: str
    data: bytes = b""
    worker: WorkerId = WorkerId("")


class LetterResent(Message, frozen=True, tag="resent/1"):
    """A dead letter was put back where it came from."""

    letter_seq: int
    """Sequence of the letter on ADVISORIES."""
    stream: str
    seq: int
    """Sequence of the copy."""
    at: float
    """Unix seconds."""


class Fault(Message, frozen=True, tag="fault/1"):
    """An error that nobody foresaw, as a worker met it at one item."""

    role: Role
    worker: WorkerId
    item: str
    """What was being handled, as in `episode/attempt/step`; one token of a subject."""
    number: int
    """Which of the item's errors it is, from 1, whoever met the earlier ones."""
    error: str
    """As in `KeyError: 'price'`."""
    place: str
    """Where it was raised, as in `judges/mine.py:12 in right_price`."""
    at: float
    """Unix seconds."""


class Position(Message, frozen=True, tag="position/1"):
    """How far a durable reader has come. Only the process that wrote the newest one may write the next."""

    name: str
    holder: str
    """A random token of the reading process."""
    sequences: dict[str, int]
    """By stream: everything up to this sequence is handled."""
    stored_at: dict[str, float] = msgspec.field(default_factory=dict)
    """By stream: Unix seconds at which the server stored the record with that sequence."""
    since_s: float | None = None
    """Unix seconds at which the streams without a sequence begin."""
    at: float = 0.0
    """Unix seconds."""
