"""Reads what a stream holds now: page by page to its end, for whoever catches up before following; or one record.

The server that answers may lag behind the stream's leader, and not show what is there: who takes an absence for final asks
`standing`, or `standing_at`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bus.ports import Bus, Record, StoredBytes
from bus.skipping import readable, skip
from bus.subjects import matches
from bus.trying import look
from schemas.errors import BusUnavailable, MessageCorrupt


@dataclass(frozen=True, slots=True)
class Page:
    records: Sequence[Record]
    """Without those that no reader takes."""
    last_seq: int
    """Where the next page begins."""


async def page_behind(bus: Bus, stream: str, subject_filter: str, seq: int) -> Page | None:
    """The next records behind a sequence, as many as come in one answer; corrupt ones are logged. None: there are no more."""
    stored = await bus.read_bytes(stream, subject_filter, after_seq=seq)
    if not stored:
        return None
    return Page([record for each in stored if (record := readable(each)) is not None], stored[-1].seq)


async def newest(bus: Bus, stream: str, subject_filter: str) -> Record | None:
    """The newest record under a filter; None where there is none, or one that no reader takes, which is left out by name.

    For whoever wants to know what is there. Who goes on behind it has to know of what no reader takes as well: `Bus.last`.
    """
    try:
        return await bus.last(stream, subject_filter)
    except MessageCorrupt as error:
        skip(error.subject, error.seq, str(error))
        return None


async def standing(bus: Bus, stream: str, subject: str) -> Record | None:
    """The record on a subject; None: the stream's leader has none either.

    Raises:
        BusUnavailable: the leader has one, which cannot be seen yet.
        MessageCorrupt: no reader takes it.
    """
    record = await bus.last(stream, subject)
    if record is None and await bus.subjects(stream, subject):
        record = await look(partial(bus.last, stream, subject))
        if record is None:
            raise BusUnavailable(f"{subject} cannot be seen yet")
    return record


async def standing_at(bus: Bus, stream: str, seq: int) -> StoredBytes | None:
    """What has a sequence, whether it is a message or not; None: it was removed, or lies behind the stream's end."""
    read = partial(bus.get_bytes, stream, seq)
    stored = await read() if seq > 0 else None
    if stored is not None:
        return stored
    state = await bus.stream_state(stream)
    return await look(read) if state.first_seq <= seq <= state.last_seq else None


async def newest_readable(bus: Bus, stream: str, subject_filter: str) -> Record | None:
    """The newest record under a filter that a reader takes, of all that there are now: where a tail comes to its end."""
    await standing_at(bus, stream, await bus.last_seq(stream))  # a server that lags shows the leader's last record first
    try:
        return await bus.last(stream, subject_filter)
    except MessageCorrupt:
        state = await bus.stream_state(stream)
    for seq in range(state.last_seq, state.first_seq - 1, -1):
        stored = await bus.get_bytes(stream, seq)
        if stored is not None and matches(subject_filter, stored.subject) and (record := readable(stored)) is not None:
            return record
    return None
