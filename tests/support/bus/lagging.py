"""A bus whose reads are answered by a replica that lags: the records of a moment ago, for so many reads."""

from collections.abc import Sequence

from bus.memory import MemoryBus
from bus.ports import Record, StoredBytes


class LaggingBus(MemoryBus):
    """Call `lag` before the writes that reads are not to show."""

    _num_reads = 0
    _upto: dict[str, int]

    def lag(self, num_reads: int) -> None:
        self._num_reads = num_reads
        self._upto = {name: stream.last_seq for name, stream in self._streams.items()}

    def show_nothing(self, num_reads: int) -> None:
        """Of the records that are there now, either."""
        self._num_reads, self._upto = num_reads, dict.fromkeys(self._streams, 0)

    @property
    def lags(self) -> bool:
        return self._num_reads > 0

    async def get_bytes(self, stream: str, seq: int) -> StoredBytes | None:
        if self.lags:
            self._num_reads -= 1
            if seq > self._upto[stream]:
                return None
        return await super().get_bytes(stream, seq)

    async def last(self, stream: str, subject_filter: str) -> Record | None:
        if not self.lags:
            return await super().last(stream, subject_filter)
        old = await self._old(stream, subject_filter)
        return old[-1] if old else None

    async def history(self, stream: str, subject_filter: str) -> Sequence[Record]:
        return await (self._old if self.lags else super().history)(stream, subject_filter)

    async def read_bytes(self, stream: str, subject_filter: str, *, after_seq: int = 0) -> Sequence[StoredBytes]:
        page = await super().read_bytes(stream, subject_filter, after_seq=after_seq)
        if not self.lags:
            return page
        self._num_reads -= 1
        return [stored for stored in page if stored.seq <= self._upto[stream]]

    async def _old(self, stream: str, subject_filter: str) -> list[Record]:
        self._num_reads -= 1
        records = await super().history(stream, subject_filter)
        return [record for record in records if record.seq <= self._upto[stream]]
