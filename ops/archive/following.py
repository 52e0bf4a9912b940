"""Follows one stream into parts. Invariant: a record is in exactly one part, or in a gap that is written down."""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
import structlog
from anyio.streams.memory import MemoryObjectSendStream

from bus.bulkhead import Bulkhead
from bus.fault import unforeseen
from bus.ports import Bus, Record
from bus.trying import look
from ops.archive.archive_source import first_row, last_row
from ops.archive.disk_room import when_disk_has_room
from ops.archive.folder import ArchiveFolder, Gap, Part, PartFolder
from ops.archive.keeping import Keeper
from ops.archive.part_buffer import PartBuffer
from ops.archive.tables import Row, encode_part
from schemas.archive_config import ArchiveConfig
from schemas.errors import ArchiveError, MessageCorrupt

_log = structlog.get_logger()
_WARN_EVERY_S = 60.0
_LOOKS = 9
"""For the end of a stream: some five seconds, in which a new leader catches up."""


@dataclass(kw_only=True)
class Follower:
    """One stream on its way to files."""

    bus: Bus
    stream: str
    subject_filter: str
    folder: ArchiveFolder
    parts: PartFolder
    keeper: Keeper
    config: ArchiveConfig
    warn_age_s: float
    """Age of a record, in seconds, at which it is in danger of being gone before it is read."""
    report: Callable[[], None]
    clock: Callable[[], float]
    """Monotonic seconds."""
    wall_clock: Callable[[], float]
    bulkhead: Bulkhead | None = None
    """Of a worker; without one, what nobody foresaw goes on."""
    num_rows: int = 0
    num_parts: int = 0
    num_gaps: int = 0
    position: int = field(init=False)
    """Sequence of the last record that was read; on opening, of the last that is in a part."""
    _gaps: list[Gap] = field(default_factory=list)
    _warned_at: float = float("-inf")

    def __post_init__(self) -> None:
        self.position = self.parts.position
        self._buffer = PartBuffer(self.config.episodes_per_part, self.config.seconds_per_part)

    @property
    def num_waiting(self) -> int:
        return len(self._buffer.rows)

    async def run(self, end: int | None) -> None:
        """From behind the last part until the record with sequence `end` is in a part, or a gap, or for ever."""
        self._forget_what_is_in_no_part()
        if end is not None and self.position >= end:
            return
        send, receive = anyio.create_memory_object_stream[Record](0)
        async with receive, anyio.create_task_group() as group:
            group.start_soon(self._read, send, end)
            while True:
                record = None
                with anyio.move_on_after(self._buffer.due_in_s(self.clock())):
                    try:
                        record = await receive.receive()
                    except anyio.EndOfStream:
                        break
                if record is not None:
                    await self._take(record)
                if record is None or self._buffer.is_full:
                    await self._write()
            if end is not None:
                self._miss_up_to(end)
            await self._write()

    async def agree(self) -> None:
        """An archive knows its stream by the run's name and by sequences alone: sets aside the parts whose last record the
        stream has lost, and may have given its sequence to another one. What is left of them there is archived again.

        Raises:
            ArchiveError: the first record of all is lost too: it is another stream.
        """
        found = self.parts.parts()
        last_seq = await self._end(found[-1].last_seq) if found else 0
        num_held = len(found)
        while num_held and await self._has_lost(last_row, found[num_held - 1], last_seq):
            num_held -= 1
        if num_held == len(found):
            return
        if not num_held and await self._has_lost(first_row, found[0], last_seq):
            raise ArchiveError(
                f"{self.parts.path} is archived up to {found[-1].last_seq} of {self.stream}, which holds other records: "
                "the stream began again, so choose another archive_config.folder"
            )
        lost = found[num_held:]
        place = await anyio.to_thread.run_sync(self.parts.set_aside, lost)
        seqs = {"first_seq": lost[0].first_seq, "last_seq": lost[-1].last_seq}
        _log.error("archive_set_aside", stream=self.stream, **seqs, place=str(place))

    async def _end(self, wanted: int) -> int:
        """Of the stream, which a new leader may not show at once."""

        async def reached() -> int | None:
            last_seq = await self.bus.last_seq(self.stream)
            return last_seq if last_seq >= wanted else None

        return await look(reached, most=_LOOKS) or await self.bus.last_seq(self.stream)

    async def _has_lost(self, row_of: Callable[[Part], Row], part: Part, last_seq: int) -> bool:
        """Whether the stream holds another record, or none yet, in a row's place. One that has aged out is not lost."""
        row = await anyio.to_thread.run_sync(row_of, part)
        if row["seq"] > last_seq:
            return True
        try:
            record = await self.bus.get(self.stream, row["seq"])
        except MessageCorrupt:
            return True
        return record is not None and (record.time_s, record.data) != (row["time_s"], row["data"])

    def _forget_what_is_in_no_part(self) -> None:
        """A run that was broken off has left it, and it is read again."""
        self.position = self.parts.position
        self.num_rows -= len(self._buffer.rows)
        self._buffer.clear()
        self.num_gaps -= len(self._gaps)
        self._gaps.clear()

    async def _read(self, send: MemoryObjectSendStream[Record], end: int | None) -> None:
        async with send, self.bus.tail(self.stream, self.subject_filter, after_seq=self.position, end_seq=end) as records:
            async for record in records:
                await send.send(record)

    async def _take(self, record: Record) -> None:
        if record.seq <= self.position:
            raise ArchiveError(
                f"{self.stream} began again while it was archived: record {record.seq} came behind {self.position}; "
                "choose another archive_config.folder"
            )
        self._miss_up_to(record.seq - 1)
        self._warn_when_late(record)
        try:
            kept = await self.keeper.keep(record)
        except MessageCorrupt as error:
            self._miss(record.seq, record.seq, f"{record.subject}: {error}")
        except Exception as error:
            if not await self._left_out(error, record.seq, record.subject):
                raise
        else:
            if kept.fault:
                self._miss(record.seq, record.seq, kept.fault, kept.episode)
            self._buffer.add(record.seq, kept.row, kept.num_bytes, self.clock())
            self.num_rows += 1
        self.position = record.seq
        self.report()

    async def _left_out(self, error: Exception, seq: int, name: str) -> bool:
        """Whether a record is a gap from now on, since nobody foresaw the error that it met."""
        surprise = unforeseen(error)
        if surprise is None or self.bulkhead is None or isinstance(surprise, OSError):
            return False  # what the disk cannot do now is no fault of the record
        fault = await self.bulkhead.left_out(surprise, f"{self.stream}/{seq}")
        self._miss(seq, seq, f"{name}: {fault}")
        return True

    def _miss_up_to(self, seq: int) -> None:
        """Behind the position, if there is anything."""
        if seq > self.position:
            self._miss(self.position + 1, seq, "aged out, or could not be read, before the archiver came to it")

    def _miss(self, first_seq: int, last_seq: int, reason: str, episode: str = "") -> None:
        gap = Gap(self.stream, first_seq, last_seq, reason, episode)
        _log.error("archive_gap", stream=self.stream, first_seq=first_seq, last_seq=last_seq, reason=reason, episode=episode)
        self._gaps.append(gap)
        self.num_gaps += 1

    def _warn_when_late(self, record: Record) -> None:
        age_s, now = self.wall_clock() - record.time_s, self.clock()
        if record.time_s and age_s > self.warn_age_s and now - self._warned_at > _WARN_EVERY_S:
            self._warned_at = now
            _log.warning("archiver_late", stream=self.stream, seq=record.seq, age_s=round(age_s), warn_age_s=self.warn_age_s)

    async def _write(self) -> None:
        try:
            await when_disk_has_room(self._write_now)
        except Exception:
            if not await self._left_out_rows():
                raise
            await when_disk_has_room(self._write_now)
        self.report()

    async def _left_out_rows(self) -> bool:
        """Whether rows that fit into no part, each by itself, are gaps from now on."""
        fitting: list[Row] = []
        for row in self._buffer.rows:
            try:
                await anyio.to_thread.run_sync(encode_part, [row], self.keeper.schema)
            except Exception as error:
                if not await self._left_out(error, row["seq"], row["episode"]):
                    raise
            else:
                fitting.append(row)
        num_left_out = len(self._buffer.rows) - len(fitting)
        self._buffer.rows = fitting
        self.num_rows -= num_left_out
        return num_left_out > 0

    def _write_now(self) -> None:
        """What a row refers to, then why rows are missing, then the rows."""
        self.keeper.sync()
        self.folder.record_gaps(self._gaps)
        self._gaps.clear()
        buffer = self._buffer
        if not buffer.rows:
            buffer.clear()
            return
        self.parts.write(buffer.first_seq, buffer.last_seq, encode_part(buffer.rows, self.keeper.schema))
        self.num_parts += 1
        _log.info("part_written", stream=self.stream, first_seq=buffer.first_seq, last_seq=buffer.last_seq)
        buffer.clear()
