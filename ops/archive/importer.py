"""Writes stored episodes into a run's streams under the same identities. Nothing is played again: no task is queued.

Every write is compare-and-set, so importing again, or going on after a kill, changes nothing that is there: equal records are
passed over, others are an error that names them. Judgements come behind all episodes, in the order in which they were given,
which is the order that a trainer consumes them in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bus.backpressure import append_bytes_when_room
from bus.ports import Bus, Expect, Record
from bus.subjects import Subjects
from ops.archive.episodes import EpisodeSource, StoredEpisode, StoredJudgement
from schemas.errors import ChainConflict, ImportConflict
from schemas.ids import EpisodeId


@dataclass
class Imported:
    """What was written, and what was there already."""

    num_episodes: int = 0
    num_records: int = 0
    num_judgements: int = 0
    num_known: int = 0
    """Records, trajectories and judgements that the run held already, byte for byte."""


@dataclass(frozen=True, kw_only=True)
class Importer:
    """Imports into one run."""

    bus: Bus
    subjects: Subjects
    """Of the target run."""
    judgements: bool = True
    """False: leave them out, so that the run's own judges judge the trajectories."""
    progress: Callable[[Imported], None] = lambda _: None
    done: Imported = field(default_factory=Imported)

    async def run(self, source: EpisodeSource) -> Imported:
        """Raises `ImportConflict` for the first record that the run holds with other content."""
        episodes: set[EpisodeId] = set()
        async for episode in source.episodes():
            await self.episode(episode)
            episodes.add(episode.episode)
            self.progress(self.done)
        if self.judgements:
            async for judgement in source.judgements():
                if judgement.episode in episodes:
                    await self.judgement(judgement)
                    self.progress(self.done)
        return self.done

    async def episode(self, episode: StoredEpisode) -> None:
        """Writes one episode's chain and trajectory, without its judgements."""
        await self._chain(episode)
        await self._trajectory(episode)
        self.done.num_episodes += 1

    async def _chain(self, episode: StoredEpisode) -> None:
        subjects = self.subjects
        stream, prefix = subjects.episodes(subjects.shard(episode.episode)), subjects.chain(episode.episode)[:-1]
        known = await self.bus.history(stream, prefix + ">")
        self._compare(episode, known, len(prefix))
        self.done.num_known += len(known)
        last_seq = known[-1].seq if known else 0
        for record in episode.records[len(known) :]:
            try:
                last_seq = await append_bytes_when_room(
                    self.bus,
                    stream,
                    prefix + record.subject_suffix,
                    record.data,
                    expect=Expect(prefix + ">", last_seq),
                )
            except ChainConflict as error:
                raise ImportConflict(f"somebody else writes to episode {episode.episode} at the moment ({error})") from error
            self.done.num_records += 1

    @staticmethod
    def _compare(episode: StoredEpisode, known: Sequence[Record], prefix: int) -> None:
        if len(known) > len(episode.records):
            raise ImportConflict(f"the run holds more of episode {episode.episode} than is to be imported")
        for record, wanted in zip(known, episode.records, strict=False):
            if (record.subject[prefix:], record.data) != (wanted.subject_suffix, wanted.data):
                raise ImportConflict(f"record {record.subject[prefix:]} of episode {episode.episode} differs in the run")

    async def _trajectory(self, episode: StoredEpisode) -> None:
        subject = self.subjects.trajectory(episode.trajectory.task.split, episode.episode)
        await self._create(self.subjects.trajectories, subject, episode.trajectory_data, f"trajectory {episode.episode}")

    async def judgement(self, judgement: StoredJudgement) -> None:
        subject = self.subjects.judgement(judgement.split, judgement.rubric, judgement.episode)
        what = f"judgement of {judgement.episode} under {judgement.rubric}"
        if await self._create(self.subjects.judged, subject, judgement.data, what):
            self.done.num_judgements += 1

    async def _create(self, stream: str, subject: str, data: bytes, what: str) -> bool:
        """Whether it was not there yet."""
        known = await self.bus.last(stream, subject)
        if known is not None and known.data == data:
            self.done.num_known += 1
            return False
        try:
            await append_bytes_when_room(self.bus, stream, subject, data, expect=Expect(subject, 0))
        except ChainConflict as error:
            raise ImportConflict(f"the {what} differs in the run") from error
        return True
