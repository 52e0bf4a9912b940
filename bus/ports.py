"""Defines the port of the bus. `bus.jetstream` and `bus.memory` both provide it and pass one contract suite.

One way to write, three to read:

- `append` writes one record and returns its sequence once the server has confirmed it;
- `work` shares a queue with every other worker of a group, each delivery acknowledged through `bus.settlement`;
- `tail` reads a stream in order, alone, from any sequence: nothing to acknowledge, resumable, survives server restarts;
- `listen` hears what is published from now on: cheap, may miss, so a reader always has a fallback.

And one to ask: `offer` puts a message before one worker, who takes it (`offers`) or does not; nothing is stored.

Workers create nothing: streams and queues exist, made by an administrator's step, or are waited for.
"""

import enum
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from schemas.messages import AnyMessage, DeadLetter


@dataclass(frozen=True, slots=True)
class Record:
    """One stored message."""

    stream: str
    subject: str
    seq: int
    message: AnyMessage
    time_s: float = 0.0
    """Unix seconds when the server stored it; 0 when it was never stored."""
    data: bytes = field(default=b"", repr=False)
    """The message as it is encoded."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """One record as the server keeps it, whether it is a message or not."""

    stream: str
    subject: str
    seq: int
    time_s: float
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Expect:
    """A compare-and-set condition: the newest record under `subject_filter` has sequence `last_seq` (0: there is none)."""

    subject_filter: str
    last_seq: int


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """A durable, shared consumer: every message goes to one worker at a time until it is acknowledged."""

    stream: str
    name: str
    subject_filters: tuple[str, ...]
    ack_wait_s: float
    max_deliver: int
    max_ack_pending: int = 1024


class Delivery(Protocol):
    """One message handed to this worker. Only `bus.settlement` calls the verbs."""

    @property
    def message(self) -> AnyMessage:
        """Raises `MessageCorrupt` when the bytes cannot be read."""
        ...

    @property
    def data(self) -> bytes: ...
    @property
    def subject(self) -> str: ...
    @property
    def stream(self) -> str: ...
    @property
    def consumer(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def num_delivered(self) -> int:
        """1 for the first delivery."""
        ...

    @property
    def queue(self) -> WorkQueue: ...

    async def ack(self) -> None:
        """Returns once the server has confirmed it."""
        ...

    async def nak(self, delay_s: float = 0.0) -> None:
        """Has it delivered again, unless its lease has run out: then it has been, or will be."""
        ...

    def hand_back(self) -> None:
        """As `nak`, by a worker about to leave: once it has left, or after a second if it stays."""
        ...

    async def in_progress(self) -> None: ...
    async def term(self, reason: str) -> None: ...


class Inbox(Protocol):
    """The deliveries of one `WorkQueue`, for one worker. Several tasks may iterate it at once; each delivery goes to one."""

    def __aiter__(self) -> AsyncIterator[Delivery]: ...
    async def __anext__(self) -> Delivery: ...


@dataclass(frozen=True, slots=True)
class QueueDepth:
    num_pending: int
    num_in_flight: int
    num_waiting: int
    num_redelivered: int
    acked_seq: int = 0
    """Of the stream: everything up to it is acknowledged."""
    delivered_seq: int = 0
    """Of the stream: everything up to it was delivered at least once."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """One follower of a stream's leader."""

    server: str
    is_current: bool
    is_offline: bool
    num_behind: int
    """Operations that it has not applied yet."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """How a stream stands. A limit of 0 is none."""

    stream: str
    num_messages: int
    num_bytes: int
    last_seq: int
    oldest_s: float
    """Unix seconds of the oldest record; 0: it is empty."""
    max_messages: int
    max_bytes: int
    first_seq: int = 1
    """Of the oldest record; behind `last_seq`: it is empty."""
    now_s: float = 0.0
    """Unix seconds by the server's clock when it said all this; 0: it did not say."""
    leader: str | None = None
    """None: a server without a cluster; empty: no leader is elected."""
    replicas: tuple[ReplicaState, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreState:
    """What all streams of this run's account take on the server's disk. A limit of 0 is none."""

    num_bytes: int
    max_bytes: int


class Offered(enum.Enum):
    """What became of an offer. Only one that was taken is true."""

    TAKEN = "taken"
    DECLINED = "declined"
    ABSENT = "absent"
    """Nobody is there: the server says so at once."""
    SILENT = "silent"
    """No answer in time; it may have been taken all the same."""

    def __bool__(self) -> bool:
        return self is Offered.TAKEN


class Lease(Protocol):
    """Held while the context is open and the server is heard; `lost` is set when it may have passed to somebody else."""

    async def wait_lost(self) -> None: ...


class Bus(Protocol):
    """One connection. Every method has a deadline and raises `BusUnavailable` when it passes."""

    async def is_up_within(self, timeout_s: float) -> bool:
        """Waits for the connection, no longer than so many seconds."""
        ...

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        """Stores one record and returns its sequence. It ends in one of three ways: stored, refused, or unknown.

        Unknown is settled by the same call again, whenever and from whichever process: where `expect` does not hold because
        this very record stands on the subject, byte for byte, it is stored. So what only one may write says who writes it: a
        start its draw, a claim or a position its holder, an answer, a judgement or a model's answer its worker. Of what says
        the same whoever writes it (a task, an end, a base model, an archived record) it is all one who did. Without `expect` a
        repeat may be stored twice, which does no harm in a queue of wake-ups or where the newest replaces the one before it,
        and nowhere else: `dead_letter` names its record.

        Raises:
            ChainConflict: refused: `expect` does not hold, and something else stands there.
            StreamFull: refused: there is no room, or the stream takes one message a subject and holds it already.
            MessageTooLarge: refused: the server never takes a message of this size.
            NotPermitted: refused: this key may not write there.
            BusUnavailable: unknown.
        """
        ...

    async def append_bytes(self, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        """`append` for what is encoded already, by whatever version: stored byte for byte."""
        ...

    async def get(self, stream: str, seq: int) -> Record | None:
        """Raises `MessageCorrupt` for one that no reader takes."""
        ...

    async def get_bytes(self, stream: str, seq: int) -> StoredBytes | None:
        """`get`, not decoded: for who asks when and under which subject it was stored."""
        ...

    async def last(self, stream: str, subject_filter: str) -> Record | None:
        """The newest record under a filter, as any server knows it: one that lags shows an older one, or none.

        Raises:
            MessageCorrupt: no reader takes it.
        """
        ...

    async def confirmed_last(self, stream: str, subject_filter: str) -> Record | None:
        """`last`, as the stream's leader knows it: for what cannot be taken back."""
        ...

    async def history(self, stream: str, subject_filter: str) -> Sequence[Record]:
        """The newest record of every subject under a filter, oldest first: a whole chain, or a whole keyed log.

        What no reader takes is left out, once by name.
        """
        ...

    async def read_bytes(self, stream: str, subject_filter: str, *, after_seq: int = 0) -> Sequence[StoredBytes]:
        """The next records behind a sequence, not decoded, as many as come in one answer; none: there are no more."""
        ...

    async def subjects(self, stream: str, subject_filter: str) -> dict[str, int]:
        """Every subject under a filter with its number of messages; no payloads travel."""
        ...

    async def purge(self, stream: str, subject_filter: str, *, up_to: int = 0) -> int:
        """Removes every record under a filter, or those up to a sequence, and returns how many there were.

        Safe to repeat; where others write again what is removed, with `up_to` alone.
        """
        ...

    def work(self, queue: WorkQueue, *, prefetch: int) -> AbstractAsyncContextManager[Inbox]:
        """Joins a queue that exists; waits for one that does not, as long as the bus is patient.

        At most `prefetch` deliveries wait here beyond those that tasks are waiting for; with 0 nothing is held that no task is
        free for. What is not begun is handed back on leaving.

        Raises:
            BusUnavailable: on entering or while iterating: no administrator has created the queue.
        """
        ...

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
        """Reads records in order, for ever: from behind `after_seq`, stored at `since_s` (unix seconds) or later, or only new
        ones. Corrupt records are skipped and logged. For one task at a time. Whoever asks again behind `BusUnavailable` goes
        on where it was.

        Args:
            end_seq: of a record that is there, the last one to be read. Where it is removed first, what is left before it is
                all that comes.
        """
        ...

    async def last_seq(self, stream: str) -> int: ...

    def listen(self, subject_filter: str) -> AbstractAsyncContextManager[AsyncIterator[Record]]:
        """Hears what is told or republished from now on. `seq` is that of the republished record, or 0.

        Raises:
            BusUnavailable: the server cannot be told who listens.
        """
        ...

    async def tell(self, subject: str, message: AnyMessage) -> None:
        """Publishes without storage or confirmation."""
        ...

    async def offer(self, subject: str, message: AnyMessage, *, timeout_s: float) -> Offered:
        """Whether somebody there took the message; known at once, unless he is silent for `timeout_s`."""
        ...

    def offers(self, subject_filter: str, accept: Callable[[AnyMessage], bool]) -> AbstractAsyncContextManager[None]:
        """While open, answers offers with what `accept` says. `accept` decides at once and must not raise.

        Raises:
            BusUnavailable: the server cannot be told who is there.
        """
        ...

    def lease(self, name: str, *, ttl_s: float) -> AbstractAsyncContextManager[Lease]:
        """Waits until the lease is free, then holds it; renewed every third of `ttl_s`."""
        ...

    async def depth(self, queue: WorkQueue) -> QueueDepth | None: ...

    async def stream_state(self, stream: str) -> StreamState: ...

    async def store_state(self) -> StoreState: ...

    async def dead_letter(self, letter: DeadLetter) -> None:
        """Stores a dead letter; the same one again, within two minutes, is the same record."""
        ...
