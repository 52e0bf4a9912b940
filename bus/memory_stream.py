"""One stream of the in-memory bus: its records under its limits, its queues, and whoever reads along."""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

import anyio
import anyio.lowlevel
import structlog

from bus.codec import decode_under
from bus.ports import Delivery, Expect, Record, StoredBytes, WorkQueue
from bus.skipping import readable
from bus.subjects import matches
from bus.topology import StreamSpec
from schemas.errors import ChainConflict, StreamFull
from schemas.messages import AnyMessage

_log = structlog.get_logger()
_LEAVES_WITHIN_S = 1.0


@dataclass
class Pending:
    """A delivered message that is not acknowledged yet."""

    num_delivered: int
    due: float
    """Monotonic seconds from which on it may be delivered again."""


@dataclass
class Consumer:
    queue: WorkQueue
    next_seq: int = 1
    pending: dict[int, Pending] = field(default_factory=dict)
    num_redelivered: int = 0
    num_waiting: int = 0


class Stream:
    def __init__(self, spec: StreamSpec, clock: Callable[[], float] = time.time) -> None:
        self.spec = spec
        self._clock = clock
        self.last_seq = 0
        self.records: dict[int, StoredBytes] = {}
        self.consumers: dict[str, Consumer] = {}
        self._changed = anyio.Event()

    def expire(self) -> None:
        """Removes what is older than the stream keeps."""
        if self.spec.max_age_s <= 0:
            return
        oldest_s = self._clock() - self.spec.max_age_s
        for seq in list(takewhile(lambda seq: self.records[seq].time_s < oldest_s, self.records)):
            del self.records[seq]

    def changed(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_changed(self, timeout_s: float = float("inf")) -> None:
        with anyio.move_on_after(max(timeout_s, 0.0)):
            await self._changed.wait()

    def under(self, subject_filter: str) -> Iterator[StoredBytes]:
        return (held for held in self.records.values() if matches(subject_filter, held.subject))

    def newest(self, subject_filter: str) -> StoredBytes | None:
        return next((held for held in reversed(self.records.values()) if matches(subject_filter, held.subject)), None)

    def store(self, subject: str, data: bytes, expect: Expect | None) -> int:
        self.expire()
        if expect is not None and not self._holds(expect):
            present = self.newest(subject)
            if present is not None and present.data == data:
                return present.seq
            raise ChainConflict(f"{expect.subject_filter} is not at sequence {expect.last_seq}")
        self._make_room(subject, data)
        self.last_seq += 1
        self.records[self.last_seq] = StoredBytes(self.spec.name, subject, self.last_seq, self._clock(), data)
        self.changed()
        return self.last_seq

    def _holds(self, expect: Expect) -> bool:
        newest = self.newest(expect.subject_filter)
        return (newest.seq if newest else 0) == expect.last_seq

    def _make_room(self, subject: str, data: bytes) -> None:
        spec = self.spec
        same = [held.seq for held in self.under(subject)] if spec.max_msgs_per_subject > 0 else []
        if same and len(same) >= spec.max_msgs_per_subject:
            if spec.discard_new_per_subject:
                raise StreamFull(f"{spec.name} holds {subject} already")
            del self.records[same[0]]
        num_bytes = sum(len(held.data) for held in self.records.values()) if spec.max_bytes > 0 else 0
        if 0 < spec.max_msgs <= len(self.records) or 0 < spec.max_bytes < num_bytes + len(data):
            raise StreamFull(f"{spec.name} is full")


@dataclass(frozen=True)
class MemoryDelivery:
    owner: Stream
    consumer_state: Consumer
    seq: int
    subject: str
    data: bytes
    num_delivered: int
    inbox: "MemoryInbox"

    @property
    def message(self) -> AnyMessage:
        return decode_under(self.subject, self.data)

    @property
    def stream(self) -> str:
        return self.owner.spec.name

    @property
    def consumer(self) -> str:
        return self.queue.name

    @property
    def queue(self) -> WorkQueue:
        return self.consumer_state.queue

    async def ack(self) -> None:
        self._end()

    async def nak(self, delay_s: float = 0.0) -> None:
        self._due_in(delay_s)

    def hand_back(self) -> None:
        self.inbox.handed_back.append(self)
        self._due_in(_LEAVES_WITHIN_S)

    def release(self) -> None:
        self._due_in(0.0)

    async def in_progress(self) -> None:
        self._due_in(self.queue.ack_wait_s)

    async def term(self, reason: str) -> None:
        _log.info("delivery_terminated", stream=self.stream, seq=self.seq, reason=reason)
        self._end()

    def _due_in(self, seconds: float) -> None:
        """Unless it was delivered again by now."""
        pending = self.consumer_state.pending.get(self.seq)
        if pending is not None and pending.num_delivered == self.num_delivered:
            pending.due = time.monotonic() + seconds
            self.owner.changed()

    def _end(self) -> None:
        self.consumer_state.pending.pop(self.seq, None)
        if self.owner.spec.retention == "workqueue":
            self.owner.records.pop(self.seq, None)
        self.owner.changed()


class MemoryInbox:
    """Delivers only to a task that waits, whatever the prefetch."""

    def __init__(self, stream: Stream, consumer: Consumer) -> None:
        self._stream = stream
        self._consumer = consumer
        self.handed_back: list[MemoryDelivery] = []

    def close(self) -> None:
        for delivery in self.handed_back:
            delivery.release()

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self

    async def __anext__(self) -> Delivery:
        await anyio.lowlevel.checkpoint()
        self._consumer.num_waiting += 1
        try:
            while (delivery := self._next()) is None:
                now = time.monotonic()
                dues = [pending.due - now for pending in self._consumer.pending.values()]
                await self._stream.wait_changed(min(dues, default=float("inf")))
        finally:
            self._consumer.num_waiting -= 1
        return delivery

    def _next(self) -> Delivery | None:
        self._stream.expire()
        consumer, now = self._consumer, time.monotonic()
        for seq, pending in list(consumer.pending.items()):
            if seq not in self._stream.records:
                del consumer.pending[seq]
            elif pending.due <= now and not self._exhausted(pending):
                consumer.num_redelivered += 1
                return self._deliver(seq, pending)
        if len(consumer.pending) >= consumer.queue.max_ack_pending:
            return None
        for seq in range(consumer.next_seq, self._stream.last_seq + 1):
            consumer.next_seq = seq + 1
            if seq in self._stream.records and self._wanted(self._stream.records[seq].subject):
                return self._deliver(seq, consumer.pending.setdefault(seq, Pending(0, 0.0)))
        return None

    def _exhausted(self, pending: Pending) -> bool:
        return 0 < self._consumer.queue.max_deliver <= pending.num_delivered

    def _wanted(self, subject: str) -> bool:
        return any(matches(subject_filter, subject) for subject_filter in self._consumer.queue.subject_filters)

    def _deliver(self, seq: int, pending: Pending) -> Delivery:
        pending.num_delivered += 1
        pending.due = time.monotonic() + self._consumer.queue.ack_wait_s
        held = self._stream.records[seq]
        return MemoryDelivery(self._stream, self._consumer, seq, held.subject, held.data, pending.num_delivered, self)


class MemoryTail:
    def __init__(self, stream: Stream, subject_filter: str, after_seq: int, since_s: float, end_seq: int | None) -> None:
        self._stream = stream
        self._filter = subject_filter
        self._after_seq = after_seq
        self._since_s = since_s
        self._end_seq = end_seq

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        await anyio.lowlevel.checkpoint()
        while True:
            self._stream.expire()
            found = next((held for held in self._stream.records.values() if self._is_next(held)), None)
            if self._end_seq is not None and (found is None or found.seq > self._end_seq):
                raise StopAsyncIteration
            if found is None:
                await self._stream.wait_changed()
                continue
            self._after_seq = found.seq
            if (record := readable(found)) is not None:
                return record

    def _is_next(self, held: StoredBytes) -> bool:
        return held.seq > self._after_seq and held.time_s >= self._since_s and matches(self._filter, held.subject)


def republished(spec: StreamSpec, subject: str) -> str | None:
    """Where a stored record is republished: the destination with its wildcards filled in."""
    if spec.republish is None or not matches(spec.republish[0], subject):
        return None
    source, destination = spec.republish
    wildcards = [token for want, token in zip(source.split("."), subject.split("."), strict=True) if want == "*"]
    for index, token in enumerate(wildcards, start=1):
        destination = destination.replace("{{wildcard(" + str(index) + ")}}", token)
    return destination
