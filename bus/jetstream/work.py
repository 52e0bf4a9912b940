"""A shared queue: deliveries go to whichever task waits, and what nobody has begun goes back to the server on leaving.

A delivery that never reaches us (a slow client drops what it cannot hold) is delivered again after its ack wait.

Invariant: a worker that leaves hands back only once the server has forgotten what it had asked for. To a role's own account a
server delivers whether or not anybody hears it still: what came back too early would be given to whoever leaves, and be
nobody's for its ack wait.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import structlog
from nats.aio.msg import Msg

from bus.background import background
from bus.codec import decode_under
from bus.handoff import Handoff
from bus.jetstream.api import NS
from bus.jetstream.calls import NoAnswer, NoResponder
from bus.jetstream.holdings import Held, Holdings
from bus.jetstream.link import Link
from bus.jetstream.pull import Puller, Source
from bus.jetstream.streams import Streams
from bus.ports import Delivery, Inbox, WorkQueue
from schemas.errors import BusError, BusUnavailable
from schemas.messages import AnyMessage
from schemas.text import visible

_log = structlog.get_logger()
_ACK_S = 5.0
_ACK_AGAIN_S = 0.5
_RECONNECT_S = 10.0
_CLOSING_S = 2.0
_LEAVES_WITHIN_S = 1.0
"""A worker that hands something back and has not left by then goes on."""
_STOPS_WITHIN_S = 0.05
"""The same of one whose tasks do not wait any more: most of those do something else, and go on."""


@dataclass(frozen=True, slots=True)
class AckReply:
    """What the reply subject of a delivered message says about it.

    `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>`; newer servers may put the domain
    and an account hash behind `ACK`, and a random token at the end.
    """

    num_delivered: int
    seq: int

    @classmethod
    def parse(cls, reply: str) -> "AckReply":
        tokens = reply.split(".")
        first = 4 if len(tokens) == 9 else 6
        return cls(num_delivered=int(tokens[first]), seq=int(tokens[first + 1]))


class JetStreamDelivery:
    """One message on its way through a worker; satisfies `bus.ports.Delivery`."""

    __slots__ = ("_back", "_held", "_holdings", "_leased_at", "_link", "_message", "num_delivered", "queue", "seq")

    def __init__(
        self, link: Link, queue: WorkQueue, message: Msg, holdings: Holdings, back: "Callable[[JetStreamDelivery], None]"
    ) -> None:
        """`back`: takes it when it is handed back."""
        meta = AckReply.parse(message.reply)
        self._link = link
        self._back = back
        self._message = message
        self._holdings = holdings
        self._held = Held(message.reply, queue.ack_wait_s)
        self._leased_at = holdings.clock()
        holdings.took(self._held, self._leased_at)
        self.queue = queue
        self.seq = meta.seq
        self.num_delivered = meta.num_delivered

    @property
    def message(self) -> AnyMessage:
        return decode_under(self.subject, self._message.data)

    @property
    def data(self) -> bytes:
        return self._message.data

    @property
    def subject(self) -> str:
        return self._message.subject

    @property
    def stream(self) -> str:
        return self.queue.stream

    @property
    def consumer(self) -> str:
        return self.queue.name

    async def ack(self) -> None:
        """Raises `BusUnavailable` when the server does not confirm it: the message will then be delivered again."""
        try:
            try:
                await self._link.request(self._message.reply, b"+ACK", timeout_s=_ACK_S)
            except NoAnswer:
                # A server that was killed may have forgotten this delivery, and then it never answers: ask once more, briefly.
                with anyio.move_on_after(_RECONNECT_S):
                    await self._link.wait_up()
                await self._link.request(self._message.reply, b"+ACK", timeout_s=_ACK_AGAIN_S)
        except (NoAnswer, NoResponder) as error:
            raise BusUnavailable(f"{self.subject} is handled, but its acknowledgement was not confirmed") from error
        finally:
            self._holdings.settled(self._held)

    async def nak(self, delay_s: float = 0.0) -> None:
        if not self._held.lasts(self._leased_at, self._holdings.clock()):
            # The server would take it from whoever has it by now.
            _log.info("lease_run_out", stream=self.stream, seq=self.seq)
            self._holdings.settled(self._held)
            return
        await self._settle(b'-NAK {"delay": %d}' % int(delay_s * NS) if delay_s > 0 else b"-NAK")

    def hand_back(self) -> None:
        self._back(self)

    async def in_progress(self) -> None:
        at_s = self._holdings.clock()
        if await self._send(b"+WPI"):
            self._leased_at = at_s
            self._holdings.renewed(self._held, at_s)

    async def term(self, reason: str) -> None:
        await self._settle(b"+TERM " + visible(reason, 200).encode())

    async def _settle(self, verb: bytes) -> None:
        # Unsent it stays noted: whoever is started again under this name hands it back.
        if await self._send(verb):
            self._holdings.settled(self._held)

    async def _send(self, verb: bytes) -> bool:
        try:
            with anyio.fail_after(_ACK_S):
                await self._link.publish(self._message.reply, verb)
        except (TimeoutError, NoAnswer):
            # Nothing depends on it: unheard, the message is delivered again after its ack wait.
            _log.info("delivery_verb_unsent", stream=self.stream, seq=self.seq, verb=verb[:5].decode())
            return False
        return True


class WorkInbox:
    """Use `work`. Satisfies `bus.ports.Inbox`."""

    def __init__(self, link: Link, streams: Streams, queue: WorkQueue, prefetch: int, holdings: Holdings) -> None:
        self._link = link
        self._holdings = holdings
        self._streams = streams
        self._queue = queue
        self._prefetch = prefetch
        self._ready = Handoff[JetStreamDelivery]()
        self._surplus = anyio.Event()
        self._unsettled = deque[JetStreamDelivery]()
        """Handed back while more was asked for."""
        self._handed_back = anyio.Event()
        self._puller = Puller(link, open_source=self._open, wanted=self._wanted, take=self._take)

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self

    async def __anext__(self) -> Delivery:
        waiting = anext(self._ready)
        self._puller.wake()
        return await waiting

    async def run(self) -> None:
        try:
            async with background(self._return_surplus, self._return_handed_back):
                await self._puller.run()
        except BusError as error:
            self._ready.fail(error)

    async def close(self) -> None:
        """Gives what no task has begun, and what was handed back, to other workers. To be called when `run` has ended."""
        while self._ready.num_items:
            await self._ready.take_newest().nak()
        await self._release()

    def _take_back(self, delivery: JetStreamDelivery) -> None:
        self._unsettled.append(delivery)
        self._handed_back.set()

    async def _return_handed_back(self) -> None:
        """For a task that was stopped where its worker goes on."""
        while True:
            await self._handed_back.wait()
            await anyio.sleep(_LEAVES_WITHIN_S)
            self._handed_back = anyio.Event()
            await self._release()

    async def _release(self) -> None:
        while self._unsettled:
            await self._unsettled[0].nak()
            self._unsettled.popleft()

    def _wanted(self) -> int:
        return self._ready.num_readers + self._prefetch - self._ready.num_items

    async def _open(self) -> Source:
        await self._streams.await_consumer(self._queue.stream, self._queue.name)
        return Source(self._queue.stream, self._queue.name)

    def _take(self, message: Msg) -> None:
        self._ready.put(JetStreamDelivery(self._link, self._queue, message, self._holdings, self._take_back))
        if self._ready.num_items > self._prefetch:
            self._surplus.set()

    async def _return_surplus(self) -> None:
        """A task that waited has gone: nobody here is free for what was asked in its name."""
        while True:
            await self._surplus.wait()
            await anyio.sleep(_STOPS_WITHIN_S)
            self._surplus = anyio.Event()
            while self._ready.num_items > self._prefetch:
                delivery = self._ready.take_newest()
                _log.debug("delivery_returned", stream=delivery.stream, seq=delivery.seq)
                await delivery.nak()


@asynccontextmanager
async def work(link: Link, streams: Streams, queue: WorkQueue, prefetch: int, holdings: Holdings) -> AsyncIterator[Inbox]:
    """See `bus.ports.Bus.work`."""
    inbox = WorkInbox(link, streams, queue, prefetch, holdings)
    await streams.await_consumer(queue.stream, queue.name)
    try:
        async with background(inbox.run):
            yield inbox
    finally:
        with anyio.move_on_after(_CLOSING_S, shield=True):
            await inbox.close()


async def hand_back(link: Link, left: Sequence[Held]) -> None:
    """Gives what a process that is dead held to whoever is free."""
    for held in left:
        await link.publish(held.reply, b"-NAK")
    if left:
        _log.info("holdings_handed_back", num=len(left))
