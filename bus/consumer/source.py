"""One stream of a reader: where it begins, and with `follow=False` where it ends."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from bus.consumer.start import TailStart
from bus.ports import Bus, Record
from bus.stored import newest_readable


@dataclass(frozen=True, slots=True)
class Source:
    """Records of one stream under one filter."""

    stream: str
    subject_filter: str
    start: TailStart = TailStart()
    end_seq: int | None = None
    """The last record to read, or 0 for none; None: follow the stream for ever."""

    def tail(self, bus: Bus) -> AbstractAsyncContextManager[AsyncIterator[Record]]:
        start = self.start
        return bus.tail(
            self.stream,
            self.subject_filter,
            after_seq=start.after_seq,
            since_s=start.since_s,
            only_new=start.only_new,
            end_seq=self.end_seq,
        )

    async def until_now(self, bus: Bus) -> "Source":
        """The same source, ending with the newest record there is now."""
        newest = await newest_readable(bus, self.stream, self.subject_filter)
        start = self.start
        is_behind = newest is None or start.only_new or newest.seq <= start.after_seq
        is_older = newest is not None and start.since_s is not None and newest.time_s < start.since_s
        return replace(self, end_seq=0 if newest is None or is_behind or is_older else newest.seq)
