"""Hands items from a synchronous producer to waiting tasks: no task a message, nothing lost when a reader is cancelled."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Handoff(Generic[T]):
    """A first-in first-out queue that knows how many readers wait."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._readers: deque[asyncio.Future[T]] = deque()
        self._error: BaseException | None = None

    @property
    def num_items(self) -> int:
        return len(self._items)

    @property
    def num_readers(self) -> int:
        return len(self._readers)

    def put(self, item: T) -> None:
        while self._readers:
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(item)
                return
        self._items.append(item)

    def take_newest(self) -> T:
        return self._items.pop()

    def fail(self, error: BaseException) -> None:
        """Makes every present and later reader raise `error` once the items are used up."""
        self._error = error
        for reader in self._readers:
            if not reader.done():
                reader.set_exception(error)
        self._readers.clear()

    def __aiter__(self) -> "Handoff[T]":
        return self

    async def __anext__(self) -> T:
        if self._items:
            return self._items.popleft()
        if self._error is not None:
            raise self._error
        reader: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._readers.append(reader)
        try:
            return await reader
        except asyncio.CancelledError:
            # The item may have been handed over in the same turn of the loop that cancelled the reader.
            if reader.done() and not reader.cancelled() and reader.exception() is None:
                self._put_back(reader.result())
            elif reader in self._readers:
                self._readers.remove(reader)
            raise

    def _put_back(self, item: T) -> None:
        while self._readers:
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(item)
                return
        self._items.appendleft(item)
