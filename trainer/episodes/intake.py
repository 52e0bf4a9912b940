"""Training episodes as one rubric judged them, in the stream's order, those to train on fetched ahead of their turn.

Invariant: what comes out is a function of JUDGED, of the rubric and of the position it starts from, however often and wherever
a trainer was stopped before. What other rubrics say of the same episodes is passed over.
"""

import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from bus.companions import companions
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.messages import Judgement, Split, Trajectory
from trainer.episodes.episode_steps import EpisodeSteps

_FETCH_AT_ONCE = 8
Fetch = Callable[[Trajectory], Coroutine[Any, Any, EpisodeSteps]]
IsLast = Callable[[Judgement], bool]
"""Hears every judgement of an iteration once, in order, and says whether the iteration is complete with it."""


def sized(count: int) -> IsLast:
    """Iterations of so many judgements."""
    numbers = itertools.count(1)
    return lambda _: next(numbers) == count


@dataclass(eq=False)
class Judged:
    """One judgement on its way to training."""

    seq: int
    judgement: Judgement
    steps: EpisodeSteps = field(default_factory=EpisodeSteps)
    """Of an episode that is wanted, once `ready` is set."""
    ready: anyio.Event = field(default_factory=anyio.Event)


class Intake:
    """Opened by `open_intake`."""

    def __init__(self, judged: MemoryObjectReceiveStream[Judged]) -> None:
        self._judged = judged

    async def batch(self, is_last: IsLast, progress: Callable[[int], None]) -> list[Judged]:
        """Waits for the judgements up to the one that `is_last`, or the last of the pass; `progress` hears how many."""
        batch: list[Judged] = []
        async for item in self._judged:
            batch.append(item)
            progress(len(batch))
            if is_last(item.judgement):
                break
        return batch


@asynccontextmanager
async def open_intake(
    bus: Bus,
    subjects: Subjects,
    fetch: Fetch,
    wants: Callable[[Judgement], bool],
    *,
    rubric: str,
    after_seq: int,
    ahead: int,
    limit: int | None = None,
) -> AsyncIterator[Intake]:
    """Reads from behind `after_seq`, at most `ahead` judgements before their turn; fetches the steps of those it `wants`.

    With a `limit` it ends after so many, whoever played them; without, demonstrations are passed over.
    """
    send, receive = anyio.create_memory_object_stream[Judged](ahead)
    to_fetch, fetching = anyio.create_memory_object_stream[Judged](ahead)
    reader = partial(_read, bus, subjects, wants, rubric, after_seq, limit, send, to_fetch)
    fetchers = [partial(_fetch, fetch, fetching)] * _FETCH_AT_ONCE
    async with send, receive, to_fetch, fetching, companions(reader, *fetchers):
        yield Intake(receive)


async def _read(
    bus: Bus,
    subjects: Subjects,
    wants: Callable[[Judgement], bool],
    rubric: str,
    after_seq: int,
    limit: int | None,
    send: MemoryObjectSendStream[Judged],
    to_fetch: MemoryObjectSendStream[Judged],
) -> None:
    remaining = limit
    judged = subjects.judgements_by(rubric, Split.TRAIN)
    async with send, bus.tail(subjects.judged, judged, after_seq=after_seq) as records:
        while remaining is None or remaining > 0:
            record = await anext(records)
            judgement = record.message
            if not isinstance(judgement, Judgement) or (limit is None and judgement.trajectory.task.demonstrate):
                continue
            item = Judged(record.seq, judgement)
            if wants(judgement):
                await to_fetch.send(item)
            else:
                item.ready.set()
            await send.send(item)
            remaining = None if remaining is None else remaining - 1


async def _fetch(fetch: Fetch, fetching: MemoryObjectReceiveStream[Judged]) -> None:
    async for item in fetching:
        item.steps = await fetch(item.judgement.trajectory)
        item.ready.set()
