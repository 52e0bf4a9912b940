"""The bus inside one process: what `bus.jetstream` does with a server, for unit tests. Nothing ages out, nothing restarts."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import structlog

from bus.codec import decode, encode
from bus.handoff import Handoff
from bus.ports import Delivery, Expect, Inbox, Lease, QueueDepth, Record, WorkQueue
from bus.subjects import Subjects
from bus.topology import StreamSpec, shared_queues, streams
from schemas.config import BusConfig
from schemas.errors import BusUnavailable, ChainConflict, MessageCorrupt, MessageTooLarge, StreamFull
from schemas.messages import AnyMessage, DeadLetter

_log = structlog.get_logger()


def matches(subject_filter: str, subject: str) -> bool:
    """NATS wildcards: `*` is one token, a last `>` is one or more."""
    wanted, tokens = subject_filter.split("."), subject.split(".")
    for index, want in enumerate(wanted):
        if want == ">":
            return len(tokens) > index
        if index >= len(tokens) or want not in ("*", tokens[index]):
            return False
    return len(tokens) == len(wanted)


@dataclass
class _Pending:
    """A delivered message that is not acknowledged yet."""

    num_delivered: int
    due: float
    """Monotonic seconds from which on it may be delivered again."""


@dataclass(frozen=True, slots=True)
class _Held:
    """One record as the stream keeps it."""

    stream: str
    subject: str
    seq: int
    time_s: float
    data: bytes

    def record(self) -> Record:
        """Raises `MessageCorrupt`."""
        return Record(self.stream, self.subject, self.seq, decode(self.data), self.time_s, self.data)


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
        self.records: dict[int, _Held] = {}
        self.consumers: dict[str, _Consumer] = {}
        self._changed = anyio.Event()

    def changed(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_changed(self, timeout_s: float = float("inf")) -> None:
        with anyio.move_on_after(max(timeout_s, 0.0)):
            await self._changed.wait()

    def under(self, subject_filter: str) -> Iterator[_Held]:
        return (held for held in self.records.values() if matches(subject_filter, held.subject))

    def newest(self, subject_filter: str) -> _Held | None:
        return max(self.under(subject_filter), key=lambda held: held.seq, default=None)

    def store(self, subject: str, data: bytes, expect: Expect | None) -> int:
        if expect is not None:
            newest = self.newest(expect.subject_filter)
            if (newest.seq if newest else 0) != expect.last_seq:
                raise ChainConflict(f"{expect.subject_filter} is not at sequence {expect.last_seq}")
        self._make_room(subject, data)
        self.last_seq += 1
        self.records[self.last_seq] = _Held(self.spec.name, subject, self.last_seq, time.time(), data)
        self.changed()
        return self.last_seq

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
            if seq in self._stream.records and self._wanted(self._stream.records[seq].subject):
                return self._deliver(seq, consumer.pending.setdefault(seq, _Pending(0, 0.0)))
        return None

    def _exhausted(self, pending: _Pending) -> bool:
        return 0 < self._consumer.queue.max_deliver <= pending.num_delivered

    def _wanted(self, subject: str) -> bool:
        return any(matches(subject_filter, subject) for subject_filter in self._consumer.queue.subject_filters)

    def _deliver(self, seq: int, pending: _Pending) -> Delivery:
        pending.num_delivered += 1
        pending.due = time.monotonic() + self._consumer.queue.ack_wait_s
        held = self._stream.records[seq]
        return _MemoryDelivery(self._stream, self._consumer, seq, held.subject, held.data, pending.num_delivered)


class _MemoryTail:
    def __init__(self, stream: _Stream, subject_filter: str, after_seq: int, since_s: float) -> None:
        self._stream = stream
        self._filter = subject_filter
        self._after_seq = after_seq
        self._since_s = since_s

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        await anyio.lowlevel.checkpoint()
        while True:
            found = next((held for held in self._stream.under(self._filter) if self._is_next(held)), None)
            if found is None:
                await self._stream.wait_changed()
                continue
            self._after_seq = found.seq
            try:
                return found.record()
            except MessageCorrupt as error:
                _log.error("record_skipped", stream=self._stream.spec.name, seq=self._after_seq, reason=str(error))

    def _is_next(self, held: _Held) -> bool:
        return held.seq > self._after_seq and held.time_s >= self._since_s


class _MemoryLease:
    async def wait_lost(self) -> None:
        await anyio.sleep_forever()


class MemoryBus:
    """All workers of a test share one; it satisfies `bus.ports.Bus`.

    Its streams and shared queues exist from the beginning, those of the judges of `rubrics` too.
    """

    def __init__(self, subjects: Subjects, config: BusConfig | None = None, rubrics: Sequence[str] = ()) -> None:
        config = config or BusConfig()
        self._subjects = subjects
        self._max_payload_bytes = config.max_payload_bytes
        self._streams = {spec.name: _Stream(spec) for spec in streams(subjects, config)}
        for queue in shared_queues(subjects, config, rubrics):
            self._streams[queue.stream].consumers[queue.name] = _Consumer(queue)
        self._listeners: dict[Handoff[Record], str] = {}
        self._offerees: dict[Callable[[AnyMessage], bool], str] = {}
        self._leases: dict[str, anyio.Lock] = {}

    def _stream(self, name: str) -> _Stream:
        if name not in self._streams:
            raise BusUnavailable(f"stream {name} does not exist")
        return self._streams[name]

    def store(self, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        """What `append` does with an encoded message; tests store corrupt bytes with it."""
        if len(data) > self._max_payload_bytes:
            raise MessageTooLarge(f"{subject}: {len(data)} bytes exceed bus_config.max_payload_bytes")
        owner = self._stream(stream)
        seq = owner.store(subject, data, expect)
        destination = _republished(owner.spec, subject)
        if destination is not None:
            self._publish(destination, data, owner.records[seq])
        return seq

    def _publish(self, subject: str, data: bytes, stored: _Held | None) -> None:
        feeds = [feed for feed, subject_filter in self._listeners.items() if matches(subject_filter, subject)]
        try:
            message = decode(data)
        except MessageCorrupt as error:
            _log.error("message_skipped", subject=subject, reason=str(error))
            return
        for feed in feeds:
            if stored is None:
                feed.put(Record("", subject, 0, message, data=data))
            else:
                feed.put(Record(stored.stream, subject, stored.seq, message, stored.time_s, data))

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        await anyio.lowlevel.checkpoint()
        return self.store(stream, subject, encode(message), expect=expect)

    async def append_bytes(self, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        await anyio.lowlevel.checkpoint()
        return self.store(stream, subject, data, expect=expect)

    async def get(self, stream: str, seq: int) -> Record | None:
        await anyio.lowlevel.checkpoint()
        held = self._stream(stream).records.get(seq)
        return held.record() if held else None

    async def last(self, stream: str, subject_filter: str) -> Record | None:
        await anyio.lowlevel.checkpoint()
        newest = self._stream(stream).newest(subject_filter)
        return newest.record() if newest else None

    async def history(self, stream: str, subject_filter: str) -> Sequence[Record]:
        await anyio.lowlevel.checkpoint()
        newest = {held.subject: held for held in self._stream(stream).under(subject_filter)}
        return [held.record() for held in sorted(newest.values(), key=lambda held: held.seq)]

    async def subjects(self, stream: str, subject_filter: str) -> dict[str, int]:
        await anyio.lowlevel.checkpoint()
        counts: dict[str, int] = {}
        for held in self._stream(stream).under(subject_filter):
            counts[held.subject] = counts.get(held.subject, 0) + 1
        return counts

    @asynccontextmanager
    async def _work(self, queue: WorkQueue) -> AsyncIterator[Inbox]:
        stream = self._stream(queue.stream)
        if queue.name not in stream.consumers:
            raise BusUnavailable(f"the queue {queue.name} of {queue.stream} does not exist")
        yield _MemoryInbox(stream, stream.consumers[queue.name])

    def work(self, queue: WorkQueue, *, prefetch: int) -> AbstractAsyncContextManager[Inbox]:
        return self._work(queue)

    @asynccontextmanager
    async def tail(
        self,
        stream: str,
        subject_filter: str,
        *,
        after_seq: int = 0,
        since_s: float | None = None,
        only_new: bool = False,
    ) -> AsyncIterator[AsyncIterator[Record]]:
        owner = self._stream(stream)
        yield _MemoryTail(owner, subject_filter, owner.last_seq if only_new else after_seq, since_s or 0.0)

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
        self._publish(subject, data, None)

    async def offer(self, subject: str, message: AnyMessage, *, timeout_s: float) -> bool:
        await anyio.lowlevel.checkpoint()
        accept = next((accept for accept, wanted in self._offerees.items() if matches(wanted, subject)), None)
        return accept is not None and accept(message)

    @asynccontextmanager
    async def offers(self, subject_filter: str, accept: Callable[[AnyMessage], bool]) -> AsyncIterator[None]:
        self._offerees[accept] = subject_filter
        try:
            yield
        finally:
            del self._offerees[accept]

    @asynccontextmanager
    async def lease(self, name: str, *, ttl_s: float) -> AsyncIterator[Lease]:
        async with self._leases.setdefault(name, anyio.Lock()):
            yield _MemoryLease()

    async def depth(self, queue: WorkQueue) -> QueueDepth | None:
        stream = self._stream(queue.stream)
        consumer = stream.consumers.get(queue.name)
        if consumer is None:
            return None
        later = (held.subject for held in stream.records.values() if held.seq >= consumer.next_seq)
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
