"""The bus inside one process: what `bus.jetstream` does with a server, for unit tests. Records age out, nothing restarts."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import anyio.lowlevel
import structlog

from bus.codec import decode_under, encode, record_of
from bus.handoff import Handoff
from bus.memory_stream import Consumer, MemoryInbox, MemoryTail, Stream, republished
from bus.ports import (
    Expect,
    Inbox,
    Lease,
    Offered,
    QueueDepth,
    Record,
    StoredBytes,
    StoreState,
    StreamState,
    WorkQueue,
)
from bus.skipping import readable
from bus.subjects import Subjects, matches
from bus.topology import shared_queues, streams
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable, MessageCorrupt, MessageTooLarge
from schemas.messages import AnyMessage, DeadLetter

_log = structlog.get_logger()


class _MemoryLease:
    async def wait_lost(self) -> None:
        await anyio.sleep_forever()


class MemoryBus:
    """All workers of a test share one; it satisfies `bus.ports.Bus`.

    Its streams and shared queues exist from the beginning, those of the judges of `rubrics` too.
    """

    def __init__(
        self,
        subjects: Subjects,
        config: BusConfig | None = None,
        rubrics: Sequence[str] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock`: unix seconds, by which records are stored and age out."""
        config = config or BusConfig()
        self._subjects = subjects
        self._clock = clock
        self._max_payload_bytes = config.max_payload_bytes
        self._streams = {spec.name: Stream(spec, clock) for spec in streams(subjects, config)}
        for queue in shared_queues(subjects, config, rubrics):
            self._streams[queue.stream].consumers[queue.name] = Consumer(queue)
        self._listeners: dict[Handoff[Record], str] = {}
        self._offerees: dict[Callable[[AnyMessage], bool], str] = {}
        self._leases: dict[str, anyio.Lock] = {}

    def _stream(self, name: str) -> Stream:
        if name not in self._streams:
            raise BusUnavailable(f"stream {name} does not exist")
        self._streams[name].expire()
        return self._streams[name]

    def store(self, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        """What `append` does with an encoded message; tests store corrupt bytes with it."""
        if len(data) > self._max_payload_bytes:
            raise MessageTooLarge(f"{subject}: {len(data)} bytes exceed bus_config.max_payload_bytes")
        owner = self._stream(stream)
        before = owner.last_seq
        seq = owner.store(subject, data, expect)
        if seq <= before:
            return seq  # it stood there
        destination = republished(owner.spec, subject)
        if destination is not None:
            self._publish(destination, data, owner.records[seq])
        return seq

    def _publish(self, subject: str, data: bytes, stored: StoredBytes | None) -> None:
        feeds = [feed for feed, subject_filter in self._listeners.items() if matches(subject_filter, subject)]
        try:
            message = decode_under(subject, data)
        except MessageCorrupt as error:
            _log.error("message_skipped", subject=subject, reason=str(error))
            return
        for feed in feeds:
            if stored is None:
                feed.put(Record("", subject, 0, message, data=data))
            else:
                feed.put(Record(stored.stream, subject, stored.seq, message, stored.time_s, data))

    async def is_up_within(self, timeout_s: float) -> bool:
        return True

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        await anyio.lowlevel.checkpoint()
        return self.store(stream, subject, encode(message), expect=expect)

    async def append_bytes(self, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        await anyio.lowlevel.checkpoint()
        return self.store(stream, subject, data, expect=expect)

    async def get(self, stream: str, seq: int) -> Record | None:
        held = await self.get_bytes(stream, seq)
        return record_of(held) if held else None

    async def get_bytes(self, stream: str, seq: int) -> StoredBytes | None:
        await anyio.lowlevel.checkpoint()
        return self._stream(stream).records.get(seq)

    async def last(self, stream: str, subject_filter: str) -> Record | None:
        return await self.confirmed_last(stream, subject_filter)

    async def confirmed_last(self, stream: str, subject_filter: str) -> Record | None:
        await anyio.lowlevel.checkpoint()
        newest = self._stream(stream).newest(subject_filter)
        return record_of(newest) if newest else None

    async def history(self, stream: str, subject_filter: str) -> Sequence[Record]:
        await anyio.lowlevel.checkpoint()
        newest = {held.subject: held for held in self._stream(stream).under(subject_filter)}
        in_order = sorted(newest.values(), key=lambda held: held.seq)
        return [record for held in in_order if (record := readable(held)) is not None]

    async def read_bytes(self, stream: str, subject_filter: str, *, after_seq: int = 0) -> Sequence[StoredBytes]:
        await anyio.lowlevel.checkpoint()
        return [held for held in self._stream(stream).under(subject_filter) if held.seq > after_seq]

    async def subjects(self, stream: str, subject_filter: str) -> dict[str, int]:
        await anyio.lowlevel.checkpoint()
        counts: dict[str, int] = {}
        for held in self._stream(stream).under(subject_filter):
            counts[held.subject] = counts.get(held.subject, 0) + 1
        return counts

    async def purge(self, stream: str, subject_filter: str, *, up_to: int = 0) -> int:
        await anyio.lowlevel.checkpoint()
        owner = self._stream(stream)
        gone = [held.seq for held in owner.under(subject_filter) if held.seq <= (up_to or held.seq)]
        for seq in gone:
            del owner.records[seq]
        owner.changed()
        return len(gone)

    @asynccontextmanager
    async def _work(self, queue: WorkQueue) -> AsyncIterator[Inbox]:
        stream = self._stream(queue.stream)
        if queue.name not in stream.consumers:
            raise BusUnavailable(f"the queue {queue.name} of {queue.stream} does not exist")
        inbox = MemoryInbox(stream, stream.consumers[queue.name])
        try:
            yield inbox
        finally:
            inbox.close()

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
        end_seq: int | None = None,
    ) -> AsyncIterator[AsyncIterator[Record]]:
        owner = self._stream(stream)
        yield MemoryTail(owner, subject_filter, owner.last_seq if only_new else after_seq, since_s or 0.0, end_seq)

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

    async def offer(self, subject: str, message: AnyMessage, *, timeout_s: float) -> Offered:
        await anyio.lowlevel.checkpoint()
        accept = next((accept for accept, wanted in self._offerees.items() if matches(wanted, subject)), None)
        if accept is None and any(matches(wanted, subject) for wanted in self._listeners.values()):
            await anyio.sleep(timeout_s)
            return Offered.SILENT
        if accept is None:
            return Offered.ABSENT
        return Offered.TAKEN if accept(message) else Offered.DECLINED

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
        acked_seq = min(consumer.pending, default=consumer.next_seq) - 1
        return QueueDepth(
            num_pending,
            len(consumer.pending),
            consumer.num_waiting,
            consumer.num_redelivered,
            acked_seq=acked_seq,
            delivered_seq=consumer.next_seq - 1,
        )

    async def stream_state(self, stream: str) -> StreamState:
        owner = self._stream(stream)
        held = owner.records.values()
        return StreamState(
            stream=stream,
            num_messages=len(held),
            num_bytes=sum(len(record.data) for record in held),
            first_seq=min(owner.records, default=owner.last_seq + 1),
            last_seq=owner.last_seq,
            now_s=self._clock(),
            oldest_s=min((record.time_s for record in held), default=0.0),
            max_messages=max(0, owner.spec.max_msgs),
            max_bytes=max(0, owner.spec.max_bytes),
        )

    async def store_state(self) -> StoreState:
        held = (record for stream in self._streams.values() for record in stream.records.values())
        return StoreState(sum(len(record.data) for record in held), 0)

    async def dead_letter(self, letter: DeadLetter) -> None:
        known = await self.read_bytes(self._subjects.advisories, self._subjects.dead(letter.stream))
        if not any(_names_the_same(decode_under(stored.subject, stored.data), letter) for stored in known):
            await self.append(self._subjects.advisories, self._subjects.dead(letter.stream), letter)


def _names_the_same(message: AnyMessage, letter: DeadLetter) -> bool:
    return isinstance(message, DeadLetter) and (message.consumer, message.seq) == (letter.consumer, letter.seq)
