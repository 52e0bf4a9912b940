"""Finished episodes from a run's streams, with the key of consumers: those there are, and those that end while it is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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

    def __post_init__(self) -> None:
        self._bulkhead = Bulkhead(WorkerContext(self.bus, self.subjects, Status(Role.MONITOR, WorkerId("viewer"))))
        """For its log alone: who reads may tell nobody."""

    async def fill(self, index: EpisodeIndex) -> None:
        """What is stored of trajectories comes first: of judgements read ahead, an index keeps the latest alone."""
        names, read_up = self.subjects, anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow, index, names.trajectories, names.everything("trajectory"), read_up.set)
            await read_up.wait()
            group.start_soon(self._follow, index, names.judged, names.judgements(None), index.caught_up)

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

    async def _follow(self, index: EpisodeIndex, stream: str, subject_filter: str, read_up: Callable[[], None]) -> None:
        await follow(self.bus, stream, subject_filter, partial(self._take, index), read_up=read_up)

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


def _ended(judged: Record) -> Record | None:
    """The trajectory that a judgement holds, where the stream itself lets it go earlier."""
    if not isinstance(judged.message, Judgement):
        return None
    trajectory = judged.message.trajectory
    return replace(judged, message=trajectory, data=encode(trajectory))
