"""The bus on NATS JetStream: the one class that the rest of Millrace is given as `bus.ports.Bus`."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path

import anyio
import structlog
from nats.aio.msg import Msg

from bus.address import ServerAddress
from bus.codec import decode_under, encode, record_of
from bus.handoff import Handoff
from bus.jetstream.administration import Administration, Applied
from bus.jetstream.api import RETRYABLE, ApiError, StreamInfo, ask
from bus.jetstream.append import Appender
from bus.jetstream.calls import NoResponder
from bus.jetstream.holdings import Holdings, nowhere, open_holdings
from bus.jetstream.lease import Leasing, hold_lease
from bus.jetstream.link import Link, open_link
from bus.jetstream.micro import MicroService, served
from bus.jetstream.offers import offer, offers
from bus.jetstream.read import Reader, unix_seconds
from bus.jetstream.retrying import RetryLimits, known, retried
from bus.jetstream.stream_state import standing_of
from bus.jetstream.streams import Streams
from bus.jetstream.tail import End, tail
from bus.jetstream.work import hand_back, work
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
from bus.stored import standing_at
from bus.subjects import Subjects
from bus.topology import StreamSpec, streams
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable, MessageCorrupt
from schemas.messages import AnyMessage, DeadLetter

_log = structlog.get_logger()
_LIMITS = 3.0
"""An operation may take so many times the timeout of one request: a server that is killed and restarted is not noticed."""
_HELLO = RetryLimits(attempt_s=5.0, total_s=15.0)
"""A cluster that elects its leader is silent for some seconds, as is a server that comes back to one."""


class JetStreamBus:
    """One connection; use `connect`. Safe to share among all tasks of a process."""

    def __init__(self, link: Link, subjects: Subjects, config: BusConfig, holdings: Holdings) -> None:
        self._link = link
        self._subjects = subjects
        self._holdings = holdings
        self._limits = RetryLimits(config.request_timeout_s, _LIMITS * config.request_timeout_s)
        self._screenshot_streams = {spec.name for spec in streams(subjects, config) if spec.screenshots}
        self._streams = Streams(link, self._limits)
        self._reader = Reader(link, self._streams, self._limits)
        self._appender = Appender(link, self._reader, self._streams, self._limits)

    async def is_up_within(self, timeout_s: float) -> bool:
        return await self._link.is_up_within(timeout_s)

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        return await self._appender.append_bytes(stream, subject, encode(message), expect)

    async def append_bytes(self, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        return await self._appender.append_bytes(stream, subject, data, expect)

    async def get(self, stream: str, seq: int) -> Record | None:
        stored = await self.get_bytes(stream, seq)
        return record_of(stored) if stored else None

    async def get_bytes(self, stream: str, seq: int) -> StoredBytes | None:
        return await self._reader.by_seq(stream, seq)

    async def last(self, stream: str, subject_filter: str) -> Record | None:
        # Under one subject also writers may look who may read nothing else: the subject is in the request.
        newest = self._reader.newest if _WILDCARDS.intersection(subject_filter) else self._reader.newest_on
        stored = await newest(stream, subject_filter)
        return record_of(stored) if stored else None

    async def confirmed_last(self, stream: str, subject_filter: str) -> Record | None:
        stored = await self._reader.newest_at_leader(stream, subject_filter)
        return record_of(stored) if stored else None

    async def history(self, stream: str, subject_filter: str) -> Sequence[Record]:
        newest = await self._reader.newest_of_each(stream, subject_filter)
        return [record for stored in newest if (record := readable(stored)) is not None]

    async def read_bytes(self, stream: str, subject_filter: str, *, after_seq: int = 0) -> Sequence[StoredBytes]:
        return await self._reader.page(stream, subject_filter, after_seq=after_seq)

    async def subjects(self, stream: str, subject_filter: str) -> dict[str, int]:
        return await self._reader.subjects(stream, subject_filter)

    async def purge(self, stream: str, subject_filter: str, *, up_to: int = 0) -> int:
        return await self._streams.purge(stream, subject_filter, up_to)

    def work(self, queue: WorkQueue, *, prefetch: int) -> AbstractAsyncContextManager[Inbox]:
        return work(self._link, self._streams, queue, prefetch, self._holdings)

    def tail(
        self,
        stream: str,
        subject_filter: str,
        *,
        after_seq: int = 0,
        since_s: float | None = None,
        only_new: bool = False,
        end_seq: int | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[Record]]:
        end = None if end_seq is None else End(end_seq, partial(standing_at, self, stream, end_seq))
        return tail(
            self._reader,
            stream,
            subject_filter,
            after_seq=after_seq,
            since_s=since_s,
            only_new=only_new,
            end=end,
            screenshots=stream in self._screenshot_streams,
        )

    async def last_seq(self, stream: str) -> int:
        return await self._reader.last_seq(stream)

    @asynccontextmanager
    async def listen(self, subject_filter: str) -> AsyncIterator[AsyncIterator[Record]]:
        heard = Handoff[Record]()
        feed = await self._link.subscribe(subject_filter, lambda message: _hear(heard, message))
        try:
            # Others may publish from now on, over connections of their own: the server must know of us first.
            await known(self._link, subject_filter, self._limits)
            if feed.refused:
                raise self._link.refusal("subscription", feed.subject)
            yield heard
        finally:
            await self._link.forget(feed)

    async def tell(self, subject: str, message: AnyMessage) -> None:
        try:
            with anyio.fail_after(self._limits.attempt_s):
                await self._link.publish(subject, encode(message))
        except TimeoutError:
            raise BusUnavailable(f"{subject} could not be sent: no connection to the server") from None

    async def offer(self, subject: str, message: AnyMessage, *, timeout_s: float) -> Offered:
        return await offer(self._link, subject, encode(message), timeout_s=timeout_s)

    def offers(self, subject_filter: str, accept: Callable[[AnyMessage], bool]) -> AbstractAsyncContextManager[None]:
        return offers(self._link, subject_filter, accept, self._limits)

    def serve(self, service: MicroService) -> AbstractAsyncContextManager[None]:
        """While open, this process is found and asked as a NATS micro service."""
        return served(self._link, service, self._limits)

    async def ask(self, subject: str, question: bytes, *, timeout_s: float) -> bytes | None:
        """What the endpoint there answers; None: nobody is there.

        Raises:
            BusUnavailable: somebody is there and does not answer in time.
            NotPermitted: this key may not ask there.
        """
        try:
            return (await self._link.request(subject, question, timeout_s=timeout_s)).data
        except NoResponder:
            return None

    def lease(self, name: str, *, ttl_s: float) -> AbstractAsyncContextManager[Lease]:
        subject = self._subjects.lease(name)
        return hold_lease(Leasing(self._link, self._reader, self._appender, self._subjects.leases, subject, ttl_s))

    async def depth(self, queue: WorkQueue) -> QueueDepth | None:
        info = await self._streams.consumer(queue.stream, queue.name)
        if info is None:
            return None
        return QueueDepth(
            info.num_pending,
            info.num_ack_pending,
            info.num_waiting,
            info.num_redelivered,
            acked_seq=info.ack_floor.stream_seq,
            delivered_seq=info.delivered.stream_seq,
        )

    async def stream_state(self, stream: str) -> StreamState:
        return standing_of(stream, await self._streams.info(stream))

    async def store_state(self) -> StoreState:
        account = await self._streams.account()
        return StoreState(account.storage, max(0, account.limits.max_storage))

    async def dead_letter(self, letter: DeadLetter) -> None:
        stream, subject = self._subjects.advisories, self._subjects.dead(letter.stream)
        name = f"{letter.stream}.{letter.consumer}.{letter.seq}"
        await self._appender.append_bytes(stream, subject, encode(letter), None, message_id=name)

    async def create(self, specs: Iterable[StreamSpec], queues: Iterable[WorkQueue]) -> tuple[Applied, ...]:
        """See `create_topology`."""
        return await Administration(self._link, self._limits).apply(specs, queues)


_WILDCARDS = frozenset("*>")


def _hear(heard: Handoff[Record], message: Msg) -> None:
    headers = message.headers or {}
    try:
        content = decode_under(message.subject, message.data)
    except MessageCorrupt as error:
        _log.error("message_skipped", subject=message.subject, reason=str(error))
        return
    stream, seq = headers.get("Nats-Stream", ""), int(headers.get("Nats-Sequence", "0"))
    heard.put(Record(stream, message.subject, seq, content, unix_seconds(headers.get("Nats-Time-Stamp", "")), message.data))


@asynccontextmanager
async def connect(
    address: ServerAddress, subjects: Subjects, config: BusConfig, *, name: str, holdings: Path | None = None
) -> AsyncIterator[JetStreamBus]:
    """One connection to the bus; `name` tells people whose it is.

    `holdings`: a file on this machine where the worker of this name notes what it holds; what its predecessor held is handed
    back.

    Raises:
        BusUnavailable: there is no server at this address, or it has no JetStream.
    """
    async with open_link(address, name) as link:
        await require_jetstream(link, address)
        with open_holdings(holdings) if holdings else nullcontext((nowhere(), ())) as (own, left):
            await hand_back(link, left)
            yield JetStreamBus(link, subjects, config, own)


async def create_topology(bus: JetStreamBus, specs: Iterable[StreamSpec], queues: Iterable[WorkQueue]) -> tuple[Applied, ...]:
    """The administrator's step: creates a run's streams and shared queues, or changes them in place to match.

    Safe to repeat, by several processes at once. The log says what was created and changed.

    Raises:
        BusError: the server refuses a change, or this connection may not create streams.
    """
    return await bus.create(specs, queues)


async def require_jetstream(link: Link, address: ServerAddress) -> None:
    """Raises `BusUnavailable` when this account has no JetStream, or a cluster is not ready for this connection in time."""

    async def greet(wait_s: float) -> None:
        try:
            await ask(link, "INFO", None, StreamInfo, timeout_s=wait_s)
        except (NoResponder, ApiError) as error:
            joining = error.failure.err_code in RETRYABLE if isinstance(error, ApiError) else link.has_jetstream
            if joining:
                raise
            raise BusUnavailable(
                f"the NATS server at {address.url} has no JetStream for this account: start it with jetstream enabled"
            ) from error

    await retried(link, f"waiting for JetStream at {address.url}", _HELLO, greet)
