"""What a stream holds now, read page by page to its end: for whoever catches up before following."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from bus.codec import record_of
from bus.ports import Bus, Record
from schemas.errors import MessageCorrupt

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Page:
    records: Sequence[Record]
    """Without the corrupt ones."""
    last_seq: int
    """Where the next page begins."""


async def page_behind(bus: Bus, stream: str, subject_filter: str, seq: int) -> Page | None:
    """The next records behind a sequence, as many as come in one answer; corrupt ones are logged. None: there are no more."""
    stored = await bus.read_bytes(stream, subject_filter, after_seq=seq)
    if not stored:
        return None
    records: list[Record] = []
    for each in stored:
        try:
            records.append(record_of(each))
        except MessageCorrupt as error:
            _log.error("record_skipped", stream=each.stream, seq=each.seq, reason=str(error))
    return Page(records, stored[-1].seq)
