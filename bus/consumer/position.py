"""A durable reader's place, kept on POSITIONS: at least once, and one reader a name.

Every write is a compare-and-set on the reader's own record. A reader that starts writes a claim first, so an earlier reader
of the same name, dead or alive, is fenced: its next write fails. So a process that follows a crashed one goes on at once, and
of two that run at the same time the older one ends with `PositionTaken`. A server that lost power may have lost the latest
writes: the reader goes on behind what was stored before them.
"""

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import anyio
import structlog

from bus.background import background
from bus.consumer.start import Start, TailStart, tail_start
from bus.ports import Bus, Expect, Record
from bus.retry import Backoff
from bus.skipping import skip
from bus.stored import standing_at
from bus.subjects import Subjects
from bus.trying import Tries, look
from schemas.errors import BusError, BusUnavailable, ChainConflict, MessageCorrupt, PositionTaken
from schemas.ids import subject_token
from schemas.messages import Position

_log = structlog.get_logger()
_WRITE_EVERY_S = 1.0
_WRITE_EVERY = 200
"""Records after which the place is written, however little time has passed."""
_CLOSING_S = 2.0
"""What the last write waits for a connection. Over one it has what every operation has."""
_LOOKED_AGAIN = Backoff(0.1, 1.0)
"""What is read may come from a replica that lags, and a connection may come and go."""


@dataclass
class DurablePlace:
    """Where one named reader is on each stream that it reads."""

    bus: Bus
    subjects: Subjects
    name: str
    _holder: str = field(default_factory=lambda: secrets.token_hex(8))
    _seq: int = 0
    _claimed_behind_s: float = 0.0
    """When what our claim followed was stored, in unix seconds; 0: there was nothing."""
    _sequences: dict[str, int] = field(default_factory=dict)
    _stored_at: dict[str, float] = field(default_factory=dict)
    _since_s: float | None = None
    _lost: set[str] = field(default_factory=set)
    """Streams whose record at our place is gone or another one."""
    _num_unwritten: int = 0
    _due: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        subject_token(self.name, what="durable name")

    async def claim(self, streams: tuple[str, ...], start: Start) -> dict[str, TailStart]:
        """Becomes the reader of this name, and says where to begin on each stream: `start` counts the first time only."""
        async for _ in Tries(_LOOKED_AGAIN):
            record, self._seq = await self._stored(self.bus.last)
            self._claimed_behind_s = record.time_s if record is not None else 0.0
            known = record.message if record is not None and isinstance(record.message, Position) else None
            begin = tail_start(start)
            self._sequences = dict(known.sequences) if known else {}
            self._stored_at = dict(known.stored_at) if known else {}
            self._since_s = known.since_s if known else begin.since_s
            for stream in streams:
                last_seq = await self.bus.last_seq(stream)
                if stream in self._sequences:
                    await self._check(stream, last_seq)
                elif self._since_s is None:
                    self._sequences[stream] = last_seq if begin.only_new else begin.after_seq
            try:
                await self._append()
            except ChainConflict:
                continue
            return {stream: self._begin(stream) for stream in streams}
        raise AssertionError("the rounds never end")

    def passed(self, record: Record) -> None:
        """Everything up to the record is handled, or was not asked for."""
        self._sequences[record.stream], self._stored_at[record.stream] = record.seq, record.time_s
        self._num_unwritten += 1
        if self._num_unwritten >= _WRITE_EVERY:
            self._due.set()

    async def keep(self) -> None:
        """Writes the place now and then. Runs until cancelled; raises `PositionTaken`."""
        while True:
            with anyio.move_on_after(_WRITE_EVERY_S):
                await self._due.wait()
            self._due = anyio.Event()
            try:
                await self.write()
            except BusUnavailable as error:
                _log.warning("position_unwritten", durable=self.name, reason=str(error))

    async def write(self) -> None:
        """Raises `PositionTaken` when another reader has taken the name."""
        if not self._num_unwritten:
            return
        num_written = self._num_unwritten
        async for _ in Tries(_LOOKED_AGAIN):
            try:
                await self._append()
                break
            except ChainConflict as error:
                await self._require_own(error)
        self._num_unwritten -= num_written

    async def _require_own(self, conflict: ChainConflict) -> None:
        """What stands in the way may be an earlier write of ours, whose answer was lost, or what stood before a lost one."""
        record, seq = await look(self._newer) or await self._stored(self.bus.confirmed_last)
        if record is not None and not self._is_own(record):
            raise PositionTaken(
                f"another process has begun to read as {self.name!r} and goes on from the last stored place: "
                "give each process a durable name of its own"
            ) from conflict
        self._seq = seq

    def _is_own(self, record: Record) -> bool:
        """Ours, or from before our claim: what a lost write of ours stood behind."""
        is_ours = isinstance(record.message, Position) and record.message.holder == self._holder
        return is_ours or (record.seq < self._seq and record.time_s <= self._claimed_behind_s)

    async def _newer(self) -> tuple[Record | None, int] | None:
        record, seq = await self._stored(self.bus.last)
        return (record, seq) if seq > self._seq else None

    async def _stored(self, read: Callable[[str, str], Awaitable[Record | None]]) -> tuple[Record | None, int]:
        """The newest place that can be read, and the sequence that the next one follows."""
        try:
            record = await read(self.subjects.positions, self._subject)
        except MessageCorrupt as error:
            skip(error.subject, error.seq, str(error))
            return None, error.seq
        return record, record.seq if record is not None else 0

    async def close(self) -> None:
        """Writes the last place, if there is a connection; what is not written comes again."""
        with anyio.CancelScope(shield=True) as closing:
            async with background(partial(self._give_up, closing)):
                try:
                    await self.write()
                except BusError as error:
                    _log.warning("position_unwritten", durable=self.name, reason=str(error))

    async def _give_up(self, closing: anyio.CancelScope) -> None:
        async for _ in Tries(_LOOKED_AGAIN):
            if not await self.bus.is_up_within(_CLOSING_S):
                closing.cancel()

    @property
    def _subject(self) -> str:
        return self.subjects.position(self.name)

    async def _check(self, stream: str, last_seq: int) -> None:
        """A stream whose record at our place is another one lost its end or was begun again: what was stored since counts."""
        seq, stored_at = self._sequences[stream], self._stored_at.get(stream)
        stored = await standing_at(self.bus, stream, seq) if 0 < seq <= last_seq and stored_at is not None else None
        if seq <= last_seq and (stored is None or stored.time_s == stored_at):
            self._lost.discard(stream)
        else:
            _log.warning("stream_lost_its_end", durable=self.name, stream=stream, after_seq=seq, last_seq=last_seq)
            self._sequences[stream] = min(seq, last_seq)
            self._lost.add(stream)

    def _begin(self, stream: str) -> TailStart:
        if stream in self._lost and stream in self._stored_at:
            return TailStart(since_s=self._stored_at[stream])
        if stream in self._sequences:
            return TailStart(after_seq=self._sequences[stream])
        return TailStart(since_s=self._since_s)

    async def _append(self) -> None:
        place = Position(
            name=self.name,
            holder=self._holder,
            sequences=dict(self._sequences),
            stored_at=dict(self._stored_at),
            since_s=self._since_s,
            at=time.time(),
        )
        self._seq = await self.bus.append(
            self.subjects.positions, self._subject, place, expect=Expect(self._subject, self._seq)
        )
