"""Finished episodes from a run's streams, with the key of consumers: those there are, and those that end while it is read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio

from bus.bulkhead import Bulkhead
from bus.codec import encode
from bus.context import WorkerContext
from bus.following import follow
from bus.ports import Bus, Record
from bus.presence import Status
from bus.stored import newest
from bus.subjects import Subjects
from ops.archive.stream_source import read_episode, stored_judgement
from ops.web.index import EpisodeIndex
from ops.web.store import Fetched
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import JudgeCall, Judgement, Observation, Role, Trajectory


@dataclass
class StreamStore:
    """Satisfies `TrajectoryStore`."""

    bus: Bus
    subjects: Subjects
    keeps_calls = True
    _behind: set[str] = field(default_factory=set)
    """Streams whose present end was not reached yet."""

    def __post_init__(self) -> None:
        self._bulkhead = Bulkhead(WorkerContext(self.bus, self.subjects, Status(Role.MONITOR, WorkerId("viewer"))))
        """For its log alone: who reads may tell nobody."""

    async def fill(self, index: EpisodeIndex) -> None:
        names = self.subjects
        wanted = ((names.trajectories, names.everything("trajectory")), (names.judged, names.judgements(None)))
        self._behind = {stream for stream, _ in wanted}
        async with anyio.create_task_group() as group:
            for stream, subject_filter in wanted:
                group.start_soon(self._follow, index, stream, subject_filter)

    async def episode(self, episode: EpisodeId) -> Fetched | None:
        names = self.subjects
        judged = await self.bus.history(names.judged, names.judgement_of(episode))
        record = await newest(self.bus, names.trajectories, f"{names.run}.trajectory.*.{episode}")
        if record is None and judged:
            record = _ended(judged[0])
        if record is None or not isinstance(record.message, Trajectory):
            return None
        return Fetched(await read_episode(self.bus, names, record, [stored_judgement(one) for one in judged]))

    async def last_seen(self, episode: EpisodeId, attempt: int) -> Observation | None:
        names = self.subjects
        record = await newest(self.bus, names.episodes(names.shard(episode)), names.chain_kind(episode, attempt, "obs"))
        return record.message if record is not None and isinstance(record.message, Observation) else None

    async def calls(self, rubric: str, episode: EpisodeId) -> Sequence[JudgeCall]:
        records = await self.bus.history(self.subjects.calls, self.subjects.calls_of(rubric, episode))
        return [record.message for record in records if isinstance(record.message, JudgeCall)]

    async def _follow(self, index: EpisodeIndex, stream: str, subject_filter: str) -> None:
        reached_end = partial(self._reached_end, index, stream)
        await follow(self.bus, stream, subject_filter, partial(self._take, index), read_up=reached_end)

    def _take(self, index: EpisodeIndex, record: Record) -> None:
        try:
            match record.message:
                case Trajectory() as trajectory:
                    index.add(trajectory)
                case Judgement() as judgement:
                    index.rule(judgement)
        except Exception as error:  # noqa: BLE001 - one record ends no page over all others
            item = f"{record.stream}/{record.seq}"
            index.trouble(f"Record {item} cannot be shown: {self._bulkhead.note(error, item)}.")

    def _reached_end(self, index: EpisodeIndex, stream: str) -> None:
        self._behind.discard(stream)
        if not self._behind:
            index.caught_up()


def _ended(judged: Record) -> Record | None:
    """The trajectory that a judgement holds, where the stream itself lets it go earlier."""
    if not isinstance(judged.message, Judgement):
        return None
    trajectory = judged.message.trajectory
    return replace(judged, message=trajectory, data=encode(trajectory))
