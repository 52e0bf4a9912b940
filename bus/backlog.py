"""Reads what a stream holds already, page by page, once."""

from collections.abc import AsyncIterator

from bus.ports import Bus, Record
from bus.skipping import readable


async def backlog(bus: Bus, stream: str, subject_filter: str, *, after_seq: int = 0) -> AsyncIterator[Record]:
    """The records under a filter behind a sequence, oldest first. Corrupt ones are skipped and logged, as a tail does.

    Raises:
        BusUnavailable: the stream cannot be read.
    """
    while page := await bus.read_bytes(stream, subject_filter, after_seq=after_seq):
        for stored in page:
            if (record := readable(stored)) is not None:
                yield record
        after_seq = page[-1].seq
