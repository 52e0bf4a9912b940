"""Items in the order of their streams, for one `async for`.

A task of the run reads ahead by a few records; screenshots are fetched, and the place of a durable reader moves on, only when
the next item is asked for. So an item whose body was not left comes again, and a slow body slows nobody but itself.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Generic, Literal, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus

from bus.background import first_of
from bus.consumer.item import Item
from bus.consumer.position import DurablePlace
from bus.consumer.source import Source
from bus.consumer.start import Start, moment, tail_start
from bus.evidence import Evidence
from bus.handoff import Handoff
from bus.ports import Record
from schemas.errors import MillraceError, RecordGone
from schemas.messages import AnyMessage, Screenshot

M = TypeVar("M", bound=AnyMessage)
_READ_AHEAD = 16


@dataclass(frozen=True, kw_only=True)
class ReadingWay:
    """How a stream is read."""

    start: Start
    follow: bool
    screenshots: bool
    place: DurablePlace | None


class Stream(Generic[M]):
    """Iterate it, or open it with `async with` to have it closed before the run is."""

    def __init__(
        self,
        group: TaskGroup,
        evidence: Evidence,
        sources: Sequence[Source],
        kind: type[M],
        accepts: Callable[[M], bool],
        way: ReadingWay,
    ) -> None:
        self._group = group
        self._evidence = evidence
        self._sources = sources
        self._start = way.start
        self._kind = kind
        self._accepts = accepts
        self._follow = way.follow
        self._with_screenshots = way.screenshots
        self._place = way.place
        self._given: Record | None = None
        """The record whose item the body has."""
        self._next: Record | None = None
        """The record that becomes the next item: kept while its screenshots are fetched, should that be cancelled."""
        self._state: Literal["new", "open", "closed"] = "new"
        self._failure: MillraceError | None = None
        self._scope = anyio.CancelScope()
        self._read_ahead = Handoff[Record]()
        self._room = anyio.Semaphore(_READ_AHEAD)

    async def __aenter__(self) -> "Stream[M]":
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> "Stream[M]":
        return self

    async def __anext__(self) -> Item[M]:
        await self._open()
        if self._state == "closed":
            raise StopAsyncIteration
        self._leave(self._given)
        self._given = None
        while True:
            self._next = record = self._next or await self._receive_one()
            message = record.message
            if isinstance(message, self._kind) and self._accepts(message):
                screenshots = await self._screenshots(message)
                self._given, self._next = record, None
                return self._item(record, message, screenshots)
            self._leave(record)
            self._next = None

    def _item(self, record: Record, message: M, screenshots: tuple[Screenshot, ...] | None) -> Item[M]:
        return Item(
            message=message,
            stream=record.stream,
            subject=record.subject,
            seq=record.seq,
            time=moment(record.time_s),
            data=record.data,
            evidence=self._evidence,
            fetched=screenshots,
        )

    @property
    def is_closed(self) -> bool:
        return self._state == "closed"

    async def aclose(self) -> None:
        """Ends reading, and stores the place of a durable reader. May be repeated."""
        was_open, self._state = self._state == "open", "closed"
        self._scope.cancel()
        if was_open and self._place is not None and self._failure is None:
            await self._place.close()

    async def _open(self) -> None:
        if self._state != "new":
            return
        try:
            await self._group.start(self._serve)
        except BaseException:
            await self.aclose()
            raise
        self._state = "open"

    async def _receive_one(self) -> Record:
        try:
            record = await anext(self._read_ahead)
        except (StopAsyncIteration, MillraceError):
            await self.aclose()
            raise
        self._room.release()
        return record

    def _leave(self, record: Record | None) -> None:
        if record is not None and self._place is not None:
            self._place.passed(record)

    async def _screenshots(self, message: M) -> tuple[Screenshot, ...] | None:
        if not self._with_screenshots:
            return None
        try:
            return await self._evidence.screenshots(message)
        except RecordGone:
            return None  # `Item.screenshots` says so to whoever asks

    async def _serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Errors before `started` reach the caller of `_open`, later ones the caller of `__anext__`."""
        try:
            with self._scope:
                async with AsyncExitStack() as stack:
                    bus = self._evidence.bus
                    sources = [source for source in await self._begun() if source.end_seq != 0]
                    tails = [await stack.enter_async_context(source.tail(bus)) for source in sources]
                    task_status.started()
                    try:
                        await self._read(tails)
                    except* MillraceError as errors:
                        self._failure = first_of(errors)
        finally:
            self._read_ahead.fail(self._failure or StopAsyncIteration())

    async def _begun(self) -> list[Source]:
        """The sources with their start, and with their end where one is wanted."""
        if self._place is not None:
            starts = await self._place.claim(tuple(source.stream for source in self._sources), self._start)
            sources = [replace(source, start=starts[source.stream]) for source in self._sources]
        else:
            sources = [replace(source, start=tail_start(self._start)) for source in self._sources]
        return sources if self._follow else [await source.until_now(self._evidence.bus) for source in sources]

    async def _read(self, tails: Sequence[AsyncIterator[Record]]) -> None:
        async with anyio.create_task_group() as group:
            if self._place is not None:
                group.start_soon(self._place.keep)
            async with anyio.create_task_group() as pumps:
                for tail in tails:
                    pumps.start_soon(self._pump, tail)
            group.cancel_scope.cancel()

    async def _pump(self, tail: AsyncIterator[Record]) -> None:
        async for record in tail:
            await self._room.acquire()
            self._read_ahead.put(record)
