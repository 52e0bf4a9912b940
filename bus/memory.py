"""The bus inside one process: what `bus.jetstream` does with a server, for unit tests. Nothing ages out, nothing restarts."""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import structlog

from bus.codec import decode, encode
from bus.handoff import Handoff
from bus.ports import Delivery, Expect, Inbox, Lease, QueueDepth, Record, StoredBytes, WorkQueue
from bus.subjects import Subjects, matches
from bus.topology import StreamSpec, streams
from schemas.config import BusConfig
from schemas.errors import BusUnavailable, ChainConflict, MessageCorrupt, StreamFull
from schemas.messages import AnyMessage, DeadLetter

_log = structlog.get_logger()


@dataclass
class _Pending:
    """A delivered message that is not acknowledged yet."""

    num_delivered: int
    due: float
    """Monotonic seconds from which on it may be delivered again."""


@dataclass
class _Consumer:
    queue: WorkQueue
    next_seq: int = 1
    pending: dict[int, _Pending] = field(default_factory=dict)
    num_redelivered: int = 0
    num_waiting: int = 0


class _Stream:
    def __init__(self, spec: StreamSpec) -> None:
        self.spec = spec
        self.last_seq = 0
        self.records: dict[int, tuple[str, bytes]] = {}
        self.times: dict[int, float] = {}
        self.consumers: dict[str, _Consumer] = {}
        self._changed = anyio.Event()

    def changed(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_changed(self, timeout_s: float = float("inf")) -> None:
        with anyio.move_on_after(max(timeout_s, 0.0)):
            await self._changed.wait()

    def under(self, subject_filter: str) -> Iterator[tuple[int, str, bytes]]:
        return ((seq, subject, data) for seq, (subject, data) in self.records.items() if matches(subject_filter, subject))

    def newest(self, subject_filter: str) -> tuple[int, str, bytes] | None:
        return max(self.under(subject_filter), default=None)

    def store(self, subject: str, data: bytes, expect: Expect | None) -> int:
        if expect is not None:
            newest = self.newest(expect.subject_filter)
            if (newest[0] if newest else 0) != expect.last_seq:
                raise ChainConflict(f"{expect.subject_filter} is not at sequence {expect.last_seq}")
        limit = self.spec.max_msgs_per_subject
        same = [seq for seq, _, _ in self.under(subject)] if limit > 0 else []
        if limit > 0 and len(same) >= limit:
            if self.spec.discard_new:
                raise StreamFull(f"{self.spec.name} holds {subject} already")
            del self.records[same[0]]
        self.last_seq += 1
        self.records[self.last_seq] = (subject, data)
        self.times[self.last_seq] = time.time()
        self.changed()
        return self.last_seq


@dataclass(frozen=True)
class _MemoryDelivery:
    owner: _Stream
    consumer_state: _Consumer
    seq: int
    subject: str
    data: bytes
    num_delivered: int

    @property
    def message(self) -> AnyMessage:
        return decode(self.data)

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

    async def in_progress(self) -> None:
        self._due_in(self.queue.ack_wait_s)

    async def term(self, reason: str) -> None:
        _log.info("delivery_terminated", stream=self.stream, seq=self.seq, reason=reason)
        self._end()

    def _due_in(self, seconds: float) -> None:
        pending = self.consumer_state.pending.get(self.seq)
        if pending is not None:
            pending.due = time.monotonic() + seconds
            self.owner.changed()

    def _end(self) -> None:
        self.consumer_state.pending.pop(self.seq, None)
        if self.owner.spec.retention == "workqueue":
            self.owner.records.pop(self.seq, None)
        self.owner.changed()


class _MemoryInbox:
    """Delivers only to a task that waits, whatever the prefetch."""

    def __init__(self, stream: _Stream, consumer: _Consumer) -> None:
        self._stream = stream
        self._consumer = consumer

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
            if seq in self._stream.records and self._wanted(self._stream.records[seq][0]):
                return self._deliver(seq, consumer.pending.setdefault(seq, _Pending(0, 0.0)))
        return None

    def _exhausted(self, pending: _Pending) -> bool:
        return 0 < self._consumer.queue.max_deliver <= pending.num_delivered

    def _wanted(self, subject: str) -> bool:
        return any(matches(subject_filter, subject) for subject_filter in self._consumer.queue.subject_filters)

    def _deliver(self, seq: int, pending: _Pending) -> Delivery:
        pending.num_delivered += 1
        pending.due = time.monotonic() + self._consumer.queue.ack_wait_s
        subject, data = self._stream.records[seq]
        return _MemoryDelivery(self._stream, self._consumer, seq, subject, data, pending.num_delivered)


class _MemoryTail:
    def __init__(self, stream: _Stream, subject_filter: str, after_seq: int) -> None:
        self._stream = stream
        self._filter = subject_filter
        self._after_seq = after_seq

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        await anyio.lowlevel.checkpoint()
        while True:
            found = next((record for record in self._stream.under(self._filter) if record[0] > self._after_seq), None)
            if found is None:
                await self._stream.wait_changed()
                continue
            self._after_seq, subject, data = found
            try:
                at = self._stream.times[self._after_seq]
                return Record(self._stream.spec.name, subject, self._after_seq, decode(data), at, data)
            except MessageCorrupt as error:
                _log.error("record_skipped", stream=self._stream.spec.name, seq=self._after_seq, reason=str(error))


class _MemoryLease:
    async def wait_lost(self) -> None:
        await anyio.sleep_forever()


class MemoryBus:
    """All workers of a test share one; it satisfies `bus.ports.Bus`."""

    def __init__(self, subjects: Subjects, config: BusConfig | None = None) -> None:
        self._subjects = subjects
        self._streams = {spec.name: _Stream(spec) for spec in streams(subjects, config or BusConfig())}
        self._listeners: dict[Handoff[Record], str] = {}
        self._leases: dict[str, anyio.Lock] = {}

    def _stream(self, name: str) -> _Stream:
        if name not in self._streams:
            raise BusUnavailable(f"stream {name} does not exist")
        return self._streams[name]

    def store(self, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        """What `append` does with an encoded message; tests store corrupt bytes with it."""
        owner = self._stream(stream)
        seq = owner.store(subject, data, expect)
        destination = _republished(owner.spec, subject)
        if destination is not None:
            self._publish(destination, data, owner.spec.name, seq)
        return seq

    def _publish(self, subject: str, data: bytes, stream: str, seq: int) -> None:
        feeds = [feed for feed, subject_filter in self._listeners.items() if matches(subject_filter, subject)]
        try:
            message = decode(data)
        except MessageCorrupt as error:
            _log.error("message_skipped", subject=subject, reason=str(error))
            return
        for feed in feeds:
            feed.put(Record(stream, subject, seq, message))

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        await anyio.lowlevel.checkpoint()
        return self.store(stream, subject, encode(message), expect=expect)

    async def append_bytes(self, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        await anyio.lowlevel.checkpoint()
        return self.store(stream, subject, data, expect=expect)

    async def get(self, stream: str, seq: int) -> Record | None:
        await anyio.lowlevel.checkpoint()
        stored = self._stream(stream).records.get(seq)
        return Record(stream, stored[0], seq, decode(stored[1]), 0.0, stored[1]) if stored else None

    async def last(self, stream: str, subject_filter: str) -> Record | None:
        await anyio.lowlevel.checkpoint()
        newest = self._stream(stream).newest(subject_filter)
        return (
            Record(stream, newest[1], newest[0], decode(newest[2]), self._stream(stream).times[newest[0]], newest[2])
            if newest
            else None
        )

    async def history(self, stream: str, subject_filter: str) -> Sequence[Record]:
        await anyio.lowlevel.checkpoint()
        newest = {subject: (seq, data) for seq, subject, data in self._stream(stream).under(subject_filter)}
        found = [Record(stream, subject, seq, decode(data), 0.0, data) for subject, (seq, data) in newest.items()]
        return sorted(found, key=lambda record: record.seq)

    async def read_bytes(self, stream: str, subject_filter: str, *, after_seq: int = 0) -> Sequence[StoredBytes]:
        await anyio.lowlevel.checkpoint()
        owner = self._stream(stream)
        return [
            StoredBytes(stream, subject, seq, owner.times[seq], data)
            for seq, subject, data in owner.under(subject_filter)
            if seq > after_seq
        ]

    async def subjects(self, stream: str, subject_filter: str) -> dict[str, int]:
        await anyio.lowlevel.checkpoint()
        counts: dict[str, int] = {}
        for _, subject, _ in self._stream(stream).under(subject_filter):
            counts[subject] = counts.get(subject, 0) + 1
        return counts

    @asynccontextmanager
    async def _work(self, queue: WorkQueue) -> AsyncIterator[Inbox]:
        stream = self._stream(queue.stream)
        yield _MemoryInbox(stream, stream.consumers.setdefault(queue.name, _Consumer(queue)))

    def work(self, queue: WorkQueue, *, prefetch: int) -> AbstractAsyncContextManager[Inbox]:
        return self._work(queue)

    async def remove_queue(self, queue: WorkQueue) -> None:
        self._stream(queue.stream).consumers.pop(queue.name, None)

    @asynccontextmanager
    async def tail(
        self,
        stream: str,
        subject_filter: str,
        *,
        after_seq: int = 0,
        only_new: bool = False,
        since_s: float | None = None,
    ) -> AsyncIterator[AsyncIterator[Record]]:
        owner = self._stream(stream)
        if since_s is not None:
            after_seq = sum(at < since_s for at in owner.times.values())
        yield _MemoryTail(owner, subject_filter, owner.last_seq if only_new else after_seq)

    async def last_seq(self, stream: str) -> int:
        return self._stream(stream).last_seq

    @asynccontextmanager
    async def listen(self, subject_filter: str) -> AsyncIterator[AsyncIterator[Record]]:
        feed = Handoff[Record]()
        self._listeners[feed] = subject_filter
        try:
            yield feed
        finally:
            del self._listeners[feed]

    async def tell(self, subject: str, message: AnyMessage) -> None:
        await anyio.lowlevel.checkpoint()
        data = encode(message)
        for name, stream in self._streams.items():
            if any(matches(wanted, subject) for wanted in stream.spec.subjects):
                self.store(name, subject, data)
        self._publish(subject, data, "", 0)

    @asynccontextmanager
    async def lease(self, name: str, *, ttl_s: float) -> AsyncIterator[Lease]:
        async with self._leases.setdefault(name, anyio.Lock()):
            yield _MemoryLease()

    async def depth(self, queue: WorkQueue) -> QueueDepth | None:
        stream = self._stream(queue.stream)
        consumer = stream.consumers.get(queue.name)
        if consumer is None:
            return None
        later = (subject for seq, (subject, _) in stream.records.items() if seq >= consumer.next_seq)
        num_pending = sum(any(matches(wanted, subject) for wanted in queue.subject_filters) for subject in later)
        return QueueDepth(num_pending, len(consumer.pending), consumer.num_waiting, consumer.num_redelivered)

    async def dead_letter(self, letter: DeadLetter) -> None:
        await self.append(self._subjects.advisories, self._subjects.dead(letter.stream), letter)


def _republished(spec: StreamSpec, subject: str) -> str | None:
    """Where a stored record is republished: the destination with its wildcards filled in."""
    if spec.republish is None or not matches(spec.republish[0], subject):
        return None
    source, destination = spec.republish
    wildcards = [token for want, token in zip(source.split("."), subject.split("."), strict=True) if want == "*"]
    for index, token in enumerate(wildcards, start=1):
        destination = destination.replace("{{wildcard(" + str(index) + ")}}", token)
    return destination
