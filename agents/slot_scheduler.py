"""Schedules the slots of a policy worker over its queues."""

import enum
from collections import deque

import anyio


class Source(enum.Enum):
    OWN = "own"
    """Episodes that this worker answered before: their screenshots and prefixes are cached here."""
    TRAIN = "train"
    EVAL = "eval"


def next_source(waiting: set[Source], num_given: int, eval_every: int) -> Source | None:
    """Every `eval_every`-th slot prefers evaluation, whoever else waits; the others take own episodes, then training."""
    order = [Source.OWN, Source.TRAIN, Source.EVAL]
    if num_given % eval_every == 0:
        order.insert(0, Source.EVAL)
    return next((source for source in order if source in waiting), None)


class SlotScheduler:
    """A fixed number of slots. A queue takes one before it asks for a message: nothing is held that cannot be begun."""

    def __init__(self, num_slots: int, *, eval_every: int = 10) -> None:
        self._num_free = num_slots
        self._eval_every = eval_every
        self._num_given = 0
        self._waiting: dict[Source, deque[anyio.Event]] = {source: deque() for source in Source}

    async def take(self, source: Source) -> None:
        if self._num_free > 0:
            self._num_free -= 1
            return
        granted = anyio.Event()
        self._waiting[source].append(granted)
        try:
            await granted.wait()
        except BaseException:
            if granted.is_set():
                self.give_back()
            else:
                self._waiting[source].remove(granted)
            raise

    def give_back(self) -> None:
        source = next_source({s for s, events in self._waiting.items() if events}, self._num_given, self._eval_every)
        if source is None:
            self._num_free += 1
            return
        self._num_given += 1
        self._waiting[source].popleft().set()
