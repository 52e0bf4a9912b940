"""A durable reader's place, kept on POSITIONS: at least once, and one reader a name.

Every write is a compare-and-set on the reader's own record. A reader that starts writes a claim first, so an earlier reader
of the same name, dead or alive, is fenced: its next write fails. So a process that follows a crashed one goes on at once, and
of two that run at the same time the older one ends with `PositionTaken`.
"""

import secrets
import time
from dataclasses import dataclass, field

import anyio
import structlog

from bus.consumer.start import Start, TailStart, tail_start
from bus.ports import Bus, Expect, Record
from bus.skipping import skip
from bus.subjects import Subjects
from schemas.errors import BusError, BusUnavailable, ChainConflict, MessageCorrupt, PositionTaken
from schemas.ids import subject_token
from schemas.messages import Position

_log = structlog.get_logger()
_WRITE_EVERY_S = 1.0
_WRITE_EVERY = 200
"""Records after which the place is written, however little time has passed."""
_CLOSING_S = 2.0
_LOOK_AGAIN_S = 0.1
"""What is read may come from a replica that lags."""


@dataclass
class DurablePlace:
    """Where one named reader is on each stream that it reads."""

    bus: Bus
    subjects: Subjects
    name: str
    _holder: str = field(default_factory=lambda: secrets.token_hex(8))
    _seq: int = 0
    _sequences: dict[str, int] = field(default_factory=dict)
    _since_s: float | None = None
    _num_unwritten: int = 0
    _due: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        subject_token(self.name, what="durable name")

    async def claim(self, streams: tuple[str, ...], start: Start) -> dict[str, TailStart]:
        """Becomes the reader of this name, and says where to begin on each stream: `start` counts the first time only."""
        while True:
            record, self._seq = await self._stored()
            known = record.message if record is not None and isinstance(record.message, Position) else None
            begin = tail_start(start)
            self._sequences = dict(known.sequences) if known else {}
            self._since_s = known.since_s if known else begin.since_s
            for stream in streams:
                last_seq = await self.bus.last_seq(stream)
                if self._sequences.get(stream, 0) > last_seq:
                    self._sequences[stream] = 0  # the stream is another one, begun again under its name
                elif stream not in self._sequences and self._since_s is None:
                    self._sequences[stream] = last_seq if begin.only_new else begin.after_seq
            try:
                await self._append()
            except ChainConflict:
                await anyio.sleep(_LOOK_AGAIN_S)
                continue
            return {stream: self._begin(stream) for stream in streams}

    def passed(self, stream: str, seq: int) -> None:
        """Everything up to `seq` is handled, or was not asked for."""
        self._sequences[stream] = seq
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
        while True:
            try:
                await self._append()
                break
            except ChainConflict as error:
                await self._require_own(error)
                await anyio.sleep(_LOOK_AGAIN_S)
        self._num_unwritten -= num_written

    async def _require_own(self, conflict: ChainConflict) -> None:
        """An earlier write of ours, whose answer was lost, may be what stands in the way."""
        record, _ = await self._stored()
        if record is None or not isinstance(record.message, Position) or record.message.holder != self._holder:
            raise PositionTaken(
                f"another process has begun to read as {self.name!r} and goes on from the last stored place: "
                "give each process a durable name of its own"
            ) from conflict
        self._seq = record.seq

    async def _stored(self) -> tuple[Record | None, int]:
        """The newest place that can be read, and the sequence that the next one follows."""
        try:
            record = await self.bus.last(self.subjects.positions, self._subject)
        except MessageCorrupt as error:
            skip(error.subject, error.seq, str(error))
            return None, error.seq
        return record, record.seq if record is not None else 0

    async def close(self) -> None:
        """Writes the last place; what is not written comes again."""
        with anyio.move_on_after(_CLOSING_S, shield=True):
            try:
                await self.write()
            except BusError as error:
                _log.warning("position_unwritten", durable=self.name, reason=str(error))

    @property
    def _subject(self) -> str:
        return self.subjects.position(self.name)

    def _begin(self, stream: str) -> TailStart:
        if stream in self._sequences:
            return TailStart(after_seq=self._sequences[stream])
        return TailStart(since_s=self._since_s)

    async def _append(self) -> None:
        place = Position(
            name=self.name, holder=self._holder, sequences=dict(self._sequences), since_s=self._since_s, at=time.time()
        )
        self._seq = await self.bus.append(
            self.subjects.positions, self._subject, place, expect=Expect(self._subject, self._seq)
        )
