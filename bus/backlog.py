"""What a stream holds already, as against what comes: read page by page, once."""

from collections.abc import AsyncIterator

import structlog

from bus.codec import record_of
from bus.ports import Bus, Record
from schemas.errors import MessageCorrupt

_log = structlog.get_logger()


async def backlog(bus: Bus, stream: str, subject_filter: str, *, after_seq: int = 0) -> AsyncIterator[Record]:
    """The records under a filter behind a sequence, oldest first. Corrupt ones are skipped and logged, as a tail does.

    Raises:
        BusUnavailable: the stream cannot be read.
    """
    while page := await bus.read_bytes(stream, subject_filter, after_seq=after_seq):
        for stored in page:
            try:
                record = record_of(stored)
            except MessageCorrupt as error:
                _log.error("record_skipped", stream=stored.stream, seq=stored.seq, reason=str(error))
            else:
                yield record
        after_seq = page[-1].seq
