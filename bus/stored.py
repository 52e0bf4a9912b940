"""Reads what a stream holds now: page by page to its end, for whoever catches up before following; or its newest record."""

from collections.abc import Sequence
from dataclasses import dataclass

from bus.ports import Bus, Record
from bus.skipping import readable, skip
from schemas.errors import MessageCorrupt


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
