"""Reads how far a chain is: its newest record that means anything, the attempt it belongs to, and its end if it has one.

A record that no reader takes means nothing; neither does an end of another task than the one that the chain begins with.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

from bus.ports import Bus, Record
from bus.skipping import skip
from bus.stored import standing
from bus.subjects import Subjects
from bus.trying import look
from schemas.errors import BusUnavailable, MessageCorrupt, RecordGone
from schemas.ids import EpisodeId
from schemas.messages import AnyMessage, Trajectory

_FOREIGN_END = "it ends another task than the one that its chain begins with"
_ATTEMPT_TOKENS = 7
"""Of `<run>.ep.<shard>.<episode>.<attempt>.<kind>.<step>`."""


def stream_of(subjects: Subjects, episode: EpisodeId) -> str:
    return subjects.episodes(subjects.shard(episode))


async def is_end(bus: Bus, subjects: Subjects, end: Trajectory) -> bool:
    """Whether what stands as a chain's end is one of the task that it begins with, where that is still kept."""
    try:
        begun = await standing(bus, stream_of(subjects, end.episode), subjects.chain_task(end.episode))
    except MessageCorrupt:
        return True
    return begun is None or begun.message == end.task


async def last(bus: Bus, subjects: Subjects, episode: EpisodeId) -> Record | None:
    return await bus.last(stream_of(subjects, episode), subjects.chain(episode))


async def last_behind(bus: Bus, subjects: Subjects, episode: EpisodeId, seq: int) -> Record:
    """The newest record of a chain that is known to go on behind `seq`.

    Raises:
        BusUnavailable: a lagging replica does not show it.
        MessageCorrupt: no reader takes it.
    """

    async def behind() -> Record | None:
        try:
            record = await last(bus, subjects, episode)
        except MessageCorrupt as error:
            if error.seq > seq:
                raise
            return None
        return record if record is not None and record.seq > seq else None

    record = await look(behind)
    if record is None:
        raise BusUnavailable(f"what comes behind sequence {seq} of {episode} cannot be seen yet")
    return record


@dataclass(frozen=True)
class ChainState:
    """How far a chain is."""

    seq: int
    """Of its newest record, readable or not."""
    newest: AnyMessage | None
    """The newest that means anything."""
    attempt: int
    """Which that belongs to; 0: none has begun."""
    highest_attempt: int
    """That anything stands under, readable or not."""

    @property
    def end(self) -> Trajectory | None:
        return self.newest if isinstance(self.newest, Trajectory) else None


async def chain_state_of(bus: Bus, subjects: Subjects, episode: EpisodeId, *, behind: int | None = None) -> ChainState:
    """`behind`: a sequence behind which the chain is known to go on.

    Raises:
        BusUnavailable: what comes behind it cannot be seen yet.
        RecordGone: nothing of the chain stands any more.
    """
    try:
        record = await (_newest(bus, subjects, episode) if behind is None else last_behind(bus, subjects, episode, behind))
    except MessageCorrupt as error:
        skip(error.subject, error.seq, str(error))
        return await _state_before(bus, subjects, episode, error.subject, error.seq)
    if isinstance(end := record.message, Trajectory) and not await is_end(bus, subjects, end):
        skip(record.subject, record.seq, _FOREIGN_END)
        return await _state_before(bus, subjects, episode, record.subject, record.seq)
    attempt = place_of(record.subject)[0]
    return ChainState(seq=record.seq, newest=record.message, attempt=attempt, highest_attempt=attempt)


async def whole_chain_state(bus: Bus, subjects: Subjects, episode: EpisodeId, *, behind: int | None = None) -> ChainState:
    """The same, and where an attempt has begun whatever was written out of its place behind the end or a later attempt.

    Raises:
        BusUnavailable, RecordGone: as `chain_state_of`.
    """
    state = await chain_state_of(bus, subjects, episode, behind=behind)
    if state.attempt == 0 or state.end is not None:
        return state
    names = await bus.subjects(stream_of(subjects, episode), subjects.chain(episode))
    highest = max((place_of(name)[0] for name in names), default=0)
    state = replace(state, highest_attempt=max(state.highest_attempt, highest))
    if (done := subjects.chain_done(episode)) in names:
        with suppress(MessageCorrupt):
            ended = await bus.last(stream_of(subjects, episode), done)
            if ended and isinstance(end := ended.message, Trajectory) and await is_end(bus, subjects, end):
                return replace(state, newest=end)
    return state


async def _newest(bus: Bus, subjects: Subjects, episode: EpisodeId) -> Record:
    record = await last(bus, subjects, episode)
    if record is None and await is_gone(bus, subjects, episode):
        raise aged_out(episode)
    return record or await last_behind(bus, subjects, episode, 0)


async def is_gone(bus: Bus, subjects: Subjects, episode: EpisodeId) -> bool:
    """That nothing of it stands says the stream's leader: a replica that lags may not show a young chain."""
    return not await bus.subjects(stream_of(subjects, episode), subjects.chain(episode))


def aged_out(episode: EpisodeId) -> RecordGone:
    return RecordGone(f"the chain of {episode} has aged out")


async def _state_before(bus: Bus, subjects: Subjects, episode: EpisodeId, subject: str, seq: int) -> ChainState:
    """Of a chain whose newest record means nothing."""
    records = await bus.history(stream_of(subjects, episode), subjects.chain(episode))
    meant = [
        record for record in records if not isinstance(end := record.message, Trajectory) or await is_end(bus, subjects, end)
    ]
    newest = meant[-1] if meant else None
    return ChainState(
        seq=seq,
        newest=newest.message if newest else None,
        attempt=place_of(newest.subject)[0] if newest else 0,
        highest_attempt=max(place_of(name)[0] for name in (subject, *(record.subject for record in records))),
    )


def place_of(subject: str) -> tuple[int, str]:
    """Attempt and kind of a chain's record; attempt 0 of what belongs to none."""
    tokens = subject.split(".")
    return (int(tokens[4]), tokens[5]) if len(tokens) == _ATTEMPT_TOKENS and tokens[4].isdecimal() else (0, tokens[-1])
