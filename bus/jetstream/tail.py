"""Reads a stream in order, alone: no gap, nothing twice, through restarts of the server, and nothing kept on the server.

Pages of stored records are read as the reader uses them up: memory is bounded by one page. Once everything is read, a plain
subscription on the same subjects says that there is more. It is only a wake-up, so one that is lost (a slow client drops what
it cannot hold) costs a second. Streams of screenshots are asked now and then instead: every screenshot would travel twice.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import structlog

from bus.jetstream.link import Link
from bus.jetstream.read import Reader
from bus.ports import Record, StoredBytes
from bus.retry import Backoff
from bus.skipping import readable
from schemas.errors import BusUnavailable

_log = structlog.get_logger()
_POLL_S = 1.0
_POLL_SCREENSHOTS_S = 0.2
_SHOWN_SOON, _LOOKS_SOON = Backoff(0.002, 0.256), 8
_LOOKS = 10
_LOOK_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class End:
    """The last record that a reader wants."""

    seq: int
    standing: Callable[[], Awaitable[StoredBytes | None]]
    """The record; None: it was removed."""


class Tail:
    """Delivers the stored records of one stream behind a sequence, then new ones as they come. Use `tail`."""

    def __init__(
        self, link: Link, reader: Reader, stream: str, subject_filter: str, *, poll_s: float, end: End | None = None
    ) -> None:
        self._link = link
        self._reader = reader
        self._stream = stream
        self._filter = subject_filter
        self._poll_s = poll_s
        self._end = end
        self._after_seq = 0
        self._since_s: float | None = None
        self._read_s: float | None = None
        """When the record at `_after_seq` was stored, once one was read."""
        self._page: deque[StoredBytes] = deque()
        self._reconnected = False
        self._woken = anyio.Event()
        self._looks = 0
        """For what a wake-up announced: a replica may lag behind. 0: nothing is announced."""

    async def open(self, *, after_seq: int, since_s: float | None, only_new: bool) -> None:
        """Raises `BusUnavailable` when there is no such stream."""
        last_seq = await self._reader.last_seq(self._stream)
        self._after_seq = last_seq if only_new else after_seq
        self._since_s = None if only_new or after_seq else since_s
        await self._check_place(last_seq)

    def wake(self) -> None:
        self._looks = 1
        self._woken.set()

    def lost(self) -> None:
        self._reconnected = True
        self._woken.set()

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        while True:
            while self._page:
                stored = self._page.popleft()
                if self._end is not None and stored.seq > self._end.seq:
                    raise StopAsyncIteration
                if (record := readable(stored)) is not None:
                    return record
            if self._end is not None and self._after_seq >= self._end.seq:
                raise StopAsyncIteration
            if not await self._turn_page():
                if self._end is not None and await self._end.standing() is None:
                    raise StopAsyncIteration
                await self._wait()

    async def _turn_page(self) -> bool:
        """Whether there is more to read."""
        self._woken = anyio.Event()
        await self._link.wait_up()
        if self._reconnected:
            last_seq = await self._reader.last_seq(self._stream)
            self._reconnected = False
            try:
                await self._check_place(last_seq)
            except BusUnavailable:
                self._reconnected = True
                raise
        page = await self._reader.page(self._stream, self._filter, after_seq=self._after_seq, since_s=self._since_s)
        if not page:
            return False
        self._page.extend(page)
        self._after_seq, self._read_s, self._since_s, self._looks = page[-1].seq, page[-1].time_s, None, 0
        return True

    async def _wait(self) -> None:
        if self._looks:
            await anyio.sleep(_SHOWN_SOON.pause_s(self._looks))
            self._looks = self._looks + 1 if self._looks < _LOOKS_SOON else 0
            return
        with anyio.move_on_after(self._poll_s):
            await self._woken.wait()

    async def _check_place(self, last_seq: int) -> None:
        """A server that lost power may have lost the end of a stream and gives its sequences to other records; or it is
        another one under its name. Either way what was stored since the last record that was read is still to be read, and
        nothing before it is read again. A new leader that is still catching up is seen by looking again.
        """
        if self._since_s is not None:
            return
        for _ in range(_LOOKS):
            if last_seq >= self._after_seq:
                break
            await anyio.sleep(_LOOK_AGAIN_S)
            last_seq = await self._reader.last_seq(self._stream)
        if last_seq >= self._after_seq and await self._is_where_it_was():
            return
        _log.warning("stream_lost_its_end", stream=self._stream, after_seq=self._after_seq, last_seq=last_seq)
        self._after_seq, self._since_s = min(self._after_seq, last_seq), self._read_s

    async def _is_where_it_was(self) -> bool:
        """Whether the last record that was read has its sequence still, or has been removed."""
        if self._read_s is None:
            return True
        record = await self._reader.by_seq(self._stream, self._after_seq)
        return record is None or record.time_s == self._read_s


@asynccontextmanager
async def tail(
    reader: Reader,
    stream: str,
    subject_filter: str,
    *,
    after_seq: int,
    since_s: float | None,
    only_new: bool,
    end: End | None,
    screenshots: bool,
) -> AsyncIterator[AsyncIterator[Record]]:
    """See `bus.ports.Bus.tail`."""
    link = reader.link
    heard = not screenshots and _names_its_records(subject_filter)
    follower = Tail(link, reader, stream, subject_filter, poll_s=_POLL_S if heard else _POLL_SCREENSHOTS_S, end=end)
    await follower.open(after_seq=after_seq, since_s=since_s, only_new=only_new)
    link.on_lost.add(follower.lost)
    feed = await link.subscribe(subject_filter, lambda _: follower.wake()) if heard else None
    try:
        yield follower
    finally:
        link.on_lost.discard(follower.lost)
        if feed is not None:
            await link.forget(feed)


def _names_its_records(subject_filter: str) -> bool:
    """Whether a filter names run and kind of record: a wider one would hear all the run's screenshots."""
    first = subject_filter.split(".")[:2]
    return len(first) == 2 and not {"*", ">"} & set(first)
