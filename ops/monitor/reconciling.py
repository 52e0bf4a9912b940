"""Makes the cells agree with the streams: what was admitted before this monitor came, and what it did not hear.

TASKS holds exactly the episodes that are queued or played, and STREAM.INFO lists its subjects without a payload. How far an
episode's chain is, its subjects say too; of a chain only its task, start and end are ever read, never a screenshot.
"""

from dataclasses import dataclass

import anyio
import structlog

from bus.backlog import backlog
from bus.ports import Bus
from bus.server_time import ServerClock
from bus.side_by_side import side_by_side
from bus.stored import newest
from bus.subjects import Subjects
from bus.topology import trajectory_queue
from ops.monitor.cells import LIVE, Cell, Phase
from ops.monitor.chains import chain_state
from ops.monitor.passing import PassOver, passing_over
from ops.monitor.state import MonitorState
from schemas.bus_config import BusConfig
from schemas.errors import BusError, MessageCorrupt
from schemas.ids import EpisodeId
from schemas.messages import EpisodeStart, Task, Trajectory

RECONCILE_S = 10.0
_QUIET_S = 30.0
"""A live episode, or one that waits for its judgement, is looked up when nothing was heard of it for so long."""
_MOST_QUIET = 64
"""Such episodes a round."""
_FRESH_S = 2.0
"""What changed so short a time before the look at TASKS may not be there yet, or any more."""
_AT_ONCE = 32
_log = structlog.get_logger()


@dataclass(frozen=True)
class Reconciling:
    bus: Bus
    subjects: Subjects
    config: BusConfig
    state: MonitorState
    joined: anyio.Event
    now: ServerClock
    pass_over: PassOver

    async def run(self) -> None:
        while True:
            try:
                if not self.joined.is_set():
                    await self._unjudged()
                await self._round()
            except BusError as error:
                _log.info("monitor_not_reconciled", reason=str(error))
            else:
                self.joined.set()
            await anyio.sleep(RECONCILE_S)

    async def _unjudged(self) -> None:
        """Episodes that had ended before: those behind what the first rubric's judges have acknowledged."""
        depth = await self.bus.depth(trajectory_queue(self.subjects, self.config, self.config.trained_rubric))
        if depth is None or not depth.num_pending + depth.num_in_flight:
            return
        everything = self.subjects.everything("trajectory")
        num_left = self.state.cells.capacity
        async for record in backlog(self.bus, self.subjects.trajectories, everything, after_seq=depth.acked_seq):
            if isinstance(record.message, Trajectory):
                with passing_over(self.pass_over, f"{record.stream}/{record.seq}"):
                    self.state.cells.ended(record.message, record.time_s)
                num_left -= 1
            if not num_left:
                return

    async def _round(self) -> None:
        began, cells = self.now(), self.state.cells
        listed = await self.bus.subjects(self.subjects.tasks, self.subjects.everything("task"))
        on_tasks = {EpisodeId(subject.rpartition(".")[2]) for subject in listed}
        unknown = [episode for episode in on_tasks if episode not in cells.by_episode or not cells.by_episode[episode].task]
        settled = [cell for cell in cells if began - cell.since > _FRESH_S]
        missed = [cell.episode for cell in settled if cell.phase in LIVE and cell.episode not in on_tasks]
        quiet = sorted((cell for cell in settled if _is_quiet(cell, began)), key=_known_at)
        wanted = dict.fromkeys((*unknown[: cells.capacity], *missed, *(cell.episode for cell in quiet[:_MOST_QUIET])))
        await side_by_side(wanted, self._look_up, num_loops=_AT_ONCE)

    async def _look_up(self, episode: EpisodeId) -> None:
        with passing_over(self.pass_over, episode):
            await self._set(episode)

    async def _set(self, episode: EpisodeId) -> None:
        """Makes one cell agree with the streams."""
        cells, names = self.state.cells, self.subjects
        stream = names.episodes(names.shard(episode))
        listed = await self.bus.subjects(stream, names.chain(episode))
        if not listed:
            cells.drop(episode)  # aged out
            return
        found = chain_state(listed)
        cell = cells.by_episode.get(episode)
        if cell is None or not cell.task:
            await self._describe(stream, episode)
        now = self.now()
        cells.place(episode, found, now)
        if episode in cells.by_episode:
            cells.by_episode[episode].checked_at = now
        if found.is_done:
            await self._end(stream, episode)
        elif (cell := cells.by_episode.get(episode)) is not None and found.attempt and not cell.worker:
            subject = names.chain_record(episode, cell.attempt, "start", 0)
            record = await self._last(stream, subject)
            if isinstance(record, EpisodeStart):
                cells.took(record)

    async def _describe(self, stream: str, episode: EpisodeId) -> None:
        try:
            record = await self.bus.last(stream, self.subjects.chain_task(episode))
        except MessageCorrupt:
            return
        if record is None:
            self.state.cells.drop(episode)  # aged out
        elif isinstance(record.message, Task):
            self.state.cells.describe(record.message, self.now(), admitted_at=record.time_s)

    async def _end(self, stream: str, episode: EpisodeId) -> None:
        """Of a chain that is done. One that is judged as well is not live."""
        judged = await self.bus.subjects(self.subjects.judged, self.subjects.judgement_of(episode))
        rubric = self.config.trained_rubric
        if any(subject.split(".")[-2] == rubric for subject in judged):
            self.state.cells.drop(episode)
            return
        end = await self._last(stream, self.subjects.chain_done(episode))
        if isinstance(end, Trajectory):
            self.state.cells.ended(end, self.now())

    async def _last(self, stream: str, subject: str) -> object:
        record = await newest(self.bus, stream, subject)
        return record.message if record is not None else None


def _is_quiet(cell: Cell, now: float) -> bool:
    return cell.phase not in (Phase.QUEUED, Phase.ENDED) and now - _known_at(cell) > _QUIET_S


def _known_at(cell: Cell) -> float:
    return max(cell.since, cell.checked_at)
