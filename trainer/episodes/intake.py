"""Training episodes as one rubric judged them, in the stream's order, those to train on fetched ahead of their turn.

Invariant: what comes out is a function of JUDGED, of the rubric and of the position it starts from, however often and wherever
a trainer was stopped before; no episode comes out twice, though a server that lost power may have it judged again. What other
rubrics say of the same episodes is passed over.
"""

import itertools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream

from bus.background import background
from bus.following import patient_tail
from bus.ports import Bus, Record
from bus.stored import standing_at
from bus.subjects import Subjects
from schemas.ids import EpisodeId
from schemas.messages import Judgement, Split, Trajectory
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.passes import NUM_REMEMBERED, Consumed
from trainer.retrying import until_available

_FETCH_AT_ONCE = 8
_log = structlog.get_logger()
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


class RecentEpisodes:
    """The latest episodes that were read, as many as are remembered."""

    def __init__(self, episodes: Iterable[EpisodeId] = ()) -> None:
        self._known: dict[EpisodeId, None] = dict.fromkeys(episodes)

    def add(self, episode: EpisodeId) -> bool:
        """False: it is known."""
        if episode in self._known:
            return False
        self._known[episode] = None
        if len(self._known) > NUM_REMEMBERED:
            del self._known[next(iter(self._known))]
        return True


@dataclass(frozen=True)
class ReadingPlace:
    """Where reading goes on, and how far."""

    after_seq: int
    consumed: Sequence[Consumed] = ()
    """The latest up to there. They are passed over wherever they stand."""
    limit: int | None = None
    """It ends after so many, whoever played them; None: never, and demonstrations are passed over."""


async def _begin(bus: Bus, stream: str, place: ReadingPlace) -> int:
    """Where reading goes on. A server that lost power may have lost the stream's end, and given its sequences to others: then
    everything is looked at from the oldest judgement that is known again, or what comes from now on, where it has lost more.
    """
    after_seq, consumed = place.after_seq, place.consumed
    last_seq = await bus.last_seq(stream)
    if last_seq >= after_seq:
        stored = await standing_at(bus, stream, after_seq) if consumed else None
        if stored is None or stored.subject.endswith(f".{consumed[-1].episode}"):
            return after_seq
    _log.warning("stream_lost_its_end", stream=stream, after_seq=after_seq, last_seq=last_seq)
    return min(last_seq, consumed[0].seq - 1) if consumed else last_seq


@asynccontextmanager
async def open_intake(
    bus: Bus,
    subjects: Subjects,
    fetch: Fetch,
    wants: Callable[[Judgement], bool],
    *,
    rubric: str,
    place: ReadingPlace,
    ahead: int,
) -> AsyncIterator[Intake]:
    """Reads from `place` on, at most `ahead` judgements before their turn; fetches the steps of those it `wants`."""
    send, receive = anyio.create_memory_object_stream[Judged](ahead)
    to_fetch, fetching = anyio.create_memory_object_stream[Judged](ahead)
    recent = RecentEpisodes(each.episode for each in place.consumed)
    begin = await until_available(partial(_begin, bus, subjects.judged, place))

    async def read() -> None:
        judged = subjects.judgements_by(rubric, Split.TRAIN)
        async with send, patient_tail(bus, subjects.judged, judged, after_seq=begin) as records:
            async for item in _judged(records, recent, place.limit):
                if wants(item.judgement):
                    await to_fetch.send(item)
                else:
                    item.ready.set()
                await send.send(item)

    fetchers = [partial(_fetch, fetch, fetching)] * _FETCH_AT_ONCE
    async with send, receive, to_fetch, fetching, background(read, *fetchers):
        yield Intake(receive)


async def _judged(records: AsyncIterator[Record], recent: RecentEpisodes, limit: int | None) -> AsyncIterator[Judged]:
    """What is to be consumed, in order: each episode once."""
    remaining = limit
    while remaining is None or remaining > 0:
        record = await anext(records)
        judgement = record.message
        if not isinstance(judgement, Judgement) or (limit is None and judgement.trajectory.task.demonstrate):
            continue
        if not recent.add(judgement.episode):
            _log.warning("judgement_passed_over", episode=judgement.episode, seq=record.seq, reason="it was consumed before")
            continue
        yield Judged(record.seq, judgement)
        remaining = None if remaining is None else remaining - 1


async def _fetch(fetch: Fetch, fetching: MemoryObjectReceiveStream[Judged]) -> None:
    async for item in fetching:
        item.steps = await fetch(item.judgement.trajectory)
        item.ready.set()
