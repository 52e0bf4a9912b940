"""Reads stored episodes from a run's streams, up to what they held when reading began.

Nothing is held open between two episodes, so a reader may stop anywhere.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import structlog

from bus.codec import record_of
from bus.ports import Bus, Record, StoredBytes
from bus.skipping import readable
from bus.stored import newest_readable
from bus.subjects import Subjects
from bus.trying import look
from ops.archive.episodes import StoredEpisode, StoredJudgement, StoredRecord
from schemas.errors import BusUnavailable
from schemas.ids import EpisodeId
from schemas.messages import Judgement, Split, Trajectory

_log = structlog.get_logger()
_PAGE = 64


@dataclass(frozen=True)
class StreamSource:
    """Satisfies `EpisodeSource`."""

    bus: Bus
    subjects: Subjects

    async def episodes(self) -> AsyncIterator[StoredEpisode]:
        async for record in records_to_the_end(self.bus, self.subjects.trajectories, self.subjects.everything("trajectory")):
            if isinstance(record.message, Trajectory):
                episode = record.message.episode
                yield await read_episode(self.bus, self.subjects, record, await self._judgements_of(episode))

    async def trajectories(self) -> AsyncIterator[Trajectory]:
        async for record in records_to_the_end(self.bus, self.subjects.trajectories, self.subjects.everything("trajectory")):
            if isinstance(record.message, Trajectory):
                yield record.message

    async def judgements(self) -> AsyncIterator[StoredJudgement]:
        async for record in records_to_the_end(self.bus, self.subjects.judged, self.subjects.judgements(None)):
            if isinstance(record.message, Judgement):
                yield stored_judgement(record)

    async def rubrics(self) -> frozenset[str]:
        judged = await self.bus.subjects(self.subjects.judged, self.subjects.judgements(None))
        return frozenset(subject.split(".")[3] for subject in judged)

    async def _judgements_of(self, episode: EpisodeId) -> tuple[StoredJudgement, ...]:
        every = self.subjects.judgement_of(episode)
        records = await self.bus.history(self.subjects.judged, every)
        return tuple(stored_judgement(record) for record in records)


async def read_episode(
    bus: Bus, subjects: Subjects, record: Record, judgements: Sequence[StoredJudgement] = (), *, sound: bool = False
) -> StoredEpisode:
    """The episode that a record of TRAJECTORIES ends, with what is left of its chain.

    Args:
        sound: with every record; else those that no reader takes are left out, once by name.

    Raises:
        BusUnavailable: the stream's leader has the chain's end, which cannot be seen yet.
        MessageCorrupt: one cannot be read, and the chain is to be sound.
    """
    trajectory = record.message
    assert isinstance(trajectory, Trajectory)
    episode = trajectory.episode
    chain = await _chain(bus, subjects, episode, record_of if sound else readable)
    prefix = len(subjects.chain(episode)) - 1
    stored = StoredEpisode(
        episode=episode,
        trajectory=trajectory,
        trajectory_data=record.data,
        trajectory_time_s=record.time_s,
        records=tuple(StoredRecord(link.subject[prefix:], link.time_s, link.data) for link in chain),
        judgements=tuple(judgements),
    )
    if not stored.is_complete:
        _log.warning("episode_chain_not_whole", episode=episode, num_records=len(chain))
    return stored


async def _chain(
    bus: Bus, subjects: Subjects, episode: EpisodeId, read: Callable[[StoredBytes], Record | None]
) -> list[Record]:
    """What is left, in the chain's order."""
    stream, done = subjects.episodes(subjects.shard(episode)), subjects.chain_done(episode)

    async def to_its_end() -> list[StoredBytes] | None:
        found, after_seq = list[StoredBytes](), 0
        while page := await bus.read_bytes(stream, subjects.chain(episode), after_seq=after_seq):
            found += page
            after_seq = page[-1].seq
        is_shown = any(stored.subject == done for stored in found) or not await bus.subjects(stream, done)
        return found if is_shown else None

    found = await look(to_its_end)
    if found is None:
        raise BusUnavailable(f"{done} cannot be seen yet")
    return [record for stored in found if (record := read(stored)) is not None]


def stored_judgement(record: Record) -> StoredJudgement:
    """Named by the subject, which is the identity, `<run>.judged.<split>.<rubric>.<episode>`."""
    _, _, split, rubric, episode = record.subject.split(".")
    return StoredJudgement(EpisodeId(episode), Split(split), rubric, record.time_s, record.data)


async def records_to_the_end(bus: Bus, stream: str, subject_filter: str, after_seq: int = 0) -> AsyncIterator[Record]:
    """Readable records in order, up to the newest one that there is now."""
    end = await present_end(bus, stream, subject_filter)
    while after_seq < end and (page := await _page(bus, stream, subject_filter, after_seq, end)):
        for record in page:
            after_seq = record.seq
            yield record


async def present_end(bus: Bus, stream: str, subject_filter: str) -> int:
    """Sequence of the newest readable record; 0: there is none."""
    newest = await newest_readable(bus, stream, subject_filter)
    return newest.seq if newest else 0


async def _page(bus: Bus, stream: str, subject_filter: str, after_seq: int, end: int) -> list[Record]:
    page: list[Record] = []
    async with bus.tail(stream, subject_filter, after_seq=after_seq, end_seq=end) as records:
        async for record in records:
            page.append(record)
            if len(page) == _PAGE:
                break
    return page
