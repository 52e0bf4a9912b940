"""Defines where a reader begins on a stream."""

import enum
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from schemas.errors import ConfigurationError


class Edge(enum.Enum):
    BEGINNING = "beginning"
    """The oldest record that is still kept."""
    NEW = "new"
    """The first record that is stored from now on."""


BEGINNING = Edge.BEGINNING
NEW = Edge.NEW


@dataclass(frozen=True, slots=True)
class After:
    """Behind the record with this sequence, which is `Item.seq` of the last one that was seen."""

    seq: int


Start = Edge | After | datetime | timedelta
"""An edge, a sequence, a moment (with its time zone), or how long ago."""


@dataclass(frozen=True, slots=True)
class TailStart:
    """The arguments of `bus.ports.Bus.tail` that a `Start` means."""

    after_seq: int = 0
    only_new: bool = False
    since_s: float | None = None
    """Unix seconds."""


def tail_start(start: Start, *, clock: Callable[[], float] = time.time) -> TailStart:
    """Raises `ConfigurationError` for a moment without a time zone and for a negative sequence."""
    match start:
        case Edge.BEGINNING:
            return TailStart()
        case Edge.NEW:
            return TailStart(only_new=True)
        case After(seq):
            if seq < 0:
                raise ConfigurationError(f"a stream cannot be read from behind sequence {seq}: write BEGINNING or After(0)")
            return TailStart(after_seq=seq)
        case timedelta():
            return TailStart(since_s=clock() - abs(start.total_seconds()))
        case datetime():
            if start.tzinfo is None:
                raise ConfigurationError(f"start={start!r} has no time zone: write datetime(..., tzinfo=UTC) or {start}+00:00")
            return TailStart(since_s=start.timestamp())


def moment(time_s: float) -> datetime:
    """In UTC, at most two microseconds early and never late, so that reading from the time of an item gives that item."""
    return datetime.fromtimestamp(math.floor(time_s * 1e6 - 0.5) / 1e6, UTC)
