"""Reads a stream in order, alone: no gap, nothing twice, through restarts of the server, and nothing kept on the server.

Pages of stored records are read as the reader uses them up: memory is bounded by one page. Once everything is read, a plain
subscription on the same subjects says that there is more. It is only a wake-up, so one that is lost (a slow client drops what
it cannot hold) costs a second. Streams of pictures are asked now and then instead: every picture would travel twice.
"""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import structlog

from bus.jetstream.link import Link
from bus.jetstream.read import Reader
from bus.ports import Record, StoredBytes
from bus.skipping import readable

_log = structlog.get_logger()
_POLL_S = 1.0
_POLL_PICTURES_S = 0.2
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.2
_LOOKS = 10
_LOOK_AGAIN_S = 0.5


class Tail:
    """Delivers the stored records of one stream behind a sequence, then new ones as they come. Use `tail`."""

    def __init__(self, link: Link, reader: Reader, stream: str, subject_filter: str, *, poll_s: float) -> None:
        self._link = link
        self._reader = reader
        self._stream = stream
        self._filter = subject_filter
        self._poll_s = poll_s
        self._after_seq = 0
        self._since_s: float | None = None
        self._page: deque[StoredBytes] = deque()
        self._reconnected = False
        self._woken = anyio.Event()
        self._pause_s = 0.0
        """Until the next look for what a wake-up announced: a replica may lag behind. 0: nothing is announced."""

    async def open(self, *, after_seq: int, since_s: float | None, only_new: bool) -> None:
        """Raises `BusUnavailable` when there is no such stream."""
        last_seq = await self._reader.last_seq(self._stream)
        self._after_seq = last_seq if only_new else after_seq
        self._since_s = None if only_new or after_seq else since_s
        await self._check_not_begun_again(last_seq)

    def wake(self) -> None:
        self._pause_s = _FIRST_PAUSE_S
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
                if (record := readable(stored)) is not None:
                    return record
            if not await self._turn_page():
                await self._wait()

    async def _turn_page(self) -> bool:
        """Whether there is more to read."""
        self._woken = anyio.Event()
        await self._link.wait_up()
        if self._reconnected:
            last_seq = await self._reader.last_seq(self._stream)
            self._reconnected = False
            await self._check_not_begun_again(last_seq)
        page = await self._reader.page(self._stream, self._filter, after_seq=self._after_seq, since_s=self._since_s)
        if not page:
            return False
        self._page.extend(page)
        self._after_seq, self._since_s, self._pause_s = page[-1].seq, None, 0.0
        return True

    async def _wait(self) -> None:
        if self._pause_s:
            await anyio.sleep(self._pause_s)
            self._pause_s = 2 * self._pause_s if self._pause_s < _LONGEST_PAUSE_S else 0.0
            return
        with anyio.move_on_after(self._poll_s):
            await self._woken.wait()

    async def _check_not_begun_again(self, last_seq: int) -> None:
        """A stream that ends before our place is another one under its name, unless a new leader is still catching up: that
        is seen by looking again, and reading everything twice is worse than waiting.
        """
        for _ in range(_LOOKS):
            if last_seq >= self._after_seq:
                return
            await anyio.sleep(_LOOK_AGAIN_S)
            last_seq = await self._reader.last_seq(self._stream)
        if last_seq < self._after_seq:
            _log.warning("stream_began_again", stream=self._stream, after_seq=self._after_seq, last_seq=last_seq)
            self._after_seq = 0


@asynccontextmanager
async def tail(
    link: Link,
    reader: Reader,
    stream: str,
    subject_filter: str,
    *,
    after_seq: int,
    since_s: float | None,
    only_new: bool,
    pictures: bool,
) -> AsyncIterator[AsyncIterator[Record]]:
    """See `bus.ports.Bus.tail`."""
    heard = not pictures and _names_its_records(subject_filter)
    follower = Tail(link, reader, stream, subject_filter, poll_s=_POLL_S if heard else _POLL_PICTURES_S)
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
    """Whether a filter names run and kind of record: a wider one would hear all the run's pictures."""
    first = subject_filter.split(".")[:2]
    return len(first) == 2 and not {"*", ">"} & set(first)
