"""Finished episodes from an archive's folder, also while an archiver adds to it. Needs pyarrow."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import anyio.to_thread

from bus.bulkhead import note
from bus.codec import decode
from bus.fault import unforeseen
from bus.presence import Status
from ops.archive.archive_source import JudgementIndex, naming, num_groups, read_group
from ops.archive.episodes import StoredEpisode, StoredJudgement, StoredRecord
from ops.archive.folder import ArchiveFolder, Part
from ops.archive.screenshots import CutRecord, join
from ops.archive.tables import Row, cut_records, read_judgement, read_trajectory
from ops.web.index import EpisodeIndex
from ops.web.store import Fetched
from schemas.errors import ArchiveDamaged
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import JudgeCall, Judgement, Observation, Role, Trajectory

_LOOK_S = 2.0
_COLUMNS = ("episode", "data", "sha256")
"""What a trajectory alone is read from: chains are most of a part."""


@dataclass(frozen=True, slots=True)
class _Place:
    part: Part
    group: int
    row: int


@dataclass
class ArchiveStore:
    """Satisfies `TrajectoryStore`."""

    folder: ArchiveFolder
    keeps_calls = False
    _places: dict[EpisodeId, _Place] = field(default_factory=dict)
    _read: set[Part] = field(default_factory=set)
    _judged: JudgementIndex | None = None
    _status: Status = field(default_factory=lambda: Status(Role.MONITOR, WorkerId("viewer")))

    async def fill(self, index: EpisodeIndex) -> None:
        self.folder.describe()
        while True:
            try:
                trajectories, judgements = self.folder.trajectories.parts(), self.folder.judgements.parts()
            except ArchiveDamaged as error:
                index.trouble(str(error))
                trajectories = judgements = ()
            for part in trajectories:
                await self._read_part(index, part, judgements=False)
            if set(judgements) - self._read:
                self._judged = None
            for part in judgements:
                await self._read_part(index, part, judgements=True)
            index.caught_up()
            await anyio.sleep(_LOOK_S)

    async def episode(self, episode: EpisodeId) -> Fetched | None:
        place = self._places.get(episode)
        return await anyio.to_thread.run_sync(self._fetched, place) if place is not None else None

    async def last_seen(self, episode: EpisodeId, attempt: int) -> Observation | None:
        place = self._places.get(episode)
        return await anyio.to_thread.run_sync(self._last_seen, place, attempt) if place is not None else None

    async def calls(self, rubric: str, episode: EpisodeId) -> Sequence[JudgeCall]:
        return ()

    async def _read_part(self, index: EpisodeIndex, part: Part, *, judgements: bool) -> None:
        if part in self._read:
            return
        self._read.add(part)
        try:
            for group in range(await anyio.to_thread.run_sync(num_groups, part)):
                found = await anyio.to_thread.run_sync(_messages, part, group, judgements)
                for row, (episode, message) in enumerate(found):
                    self._take(index, _Place(part, group, row), episode, message)
        except Exception as error:  # noqa: BLE001 - one part ends no page over all others
            self._leave_out(index, error, part.path.name)

    def _take(self, index: EpisodeIndex, place: _Place, episode: str, message: Trajectory | Judgement | Exception) -> None:
        try:
            match message:
                case Trajectory():
                    self._places[message.episode] = place
                    index.add(message)
                case Judgement():
                    index.rule(message)
                case _:
                    raise message
        except Exception as error:  # noqa: BLE001 - one row ends no page over all others
            self._leave_out(index, error, f"{place.part.path.name}/{episode}")

    def _leave_out(self, index: EpisodeIndex, error: Exception, item: str) -> None:
        surprise = unforeseen(error)
        index.trouble(str(error) if surprise is None else f"{item} cannot be shown: {note(surprise, item, self._status)}.")

    def _last_seen(self, place: _Place, attempt: int) -> Observation | None:
        steps = {step: cut for cut in cut_records(_row(place)) if (step := _observed_step(cut, attempt)) is not None}
        if not steps:
            return None
        with naming(place.part.path):
            seen = decode(self._whole(steps[max(steps)]).data)
        return seen if isinstance(seen, Observation) else None

    def _whole(self, cut: CutRecord) -> StoredRecord:
        return join(cut, self.folder.screenshots.read(cut.screenshot) if cut.screenshot is not None else b"")

    def _fetched(self, place: _Place) -> Fetched:
        problems: list[str] = []
        records: list[StoredRecord] = []
        row = _row(place)
        with naming(place.part.path):
            trajectory = read_trajectory(row)
            for cut in cut_records(row):
                try:
                    records.append(self._whole(cut))
                except ArchiveDamaged as error:
                    problems.append(f"Record {cut.suffix} cannot be shown: {error}.")
        stored = StoredEpisode(
            episode=trajectory.episode,
            trajectory=trajectory,
            trajectory_data=row["data"],
            trajectory_time_s=row["time_s"],
            records=tuple(records),
            judgements=self._judgements_of(trajectory.episode, problems),
        )
        return Fetched(stored, tuple(problems))

    def _judgements_of(self, episode: EpisodeId, problems: list[str]) -> tuple[StoredJudgement, ...]:
        try:
            if self._judged is None:
                self._judged = JudgementIndex(self.folder.judgements.parts())
            return self._judged.of(episode)
        except ArchiveDamaged as error:
            problems.append(f"Its judgements cannot be shown: {error}.")
            return ()


def _row(place: _Place) -> Row:
    return read_group(place.part, place.group)[place.row]


def _observed_step(cut: CutRecord, attempt: int) -> int | None:
    begun, kind, step = cut.suffix.split(".") if cut.suffix.count(".") == 2 else ("", "", "")
    return int(step) if (begun, kind) == (str(attempt), "obs") and step.isdecimal() else None


def _messages(part: Part, group: int, judgements: bool) -> list[tuple[str, Trajectory | Judgement | Exception]]:
    """Of every row the episode, and what it holds or why it cannot be read."""
    rows = read_group(part, group, None if judgements else _COLUMNS)
    return [(str(row["episode"]), _message(part, row, judgements=judgements)) for row in rows]


def _message(part: Part, row: Row, *, judgements: bool) -> Trajectory | Judgement | Exception:
    try:
        with naming(part.path):
            return read_judgement(row).message if judgements else read_trajectory(row)
    except Exception as error:  # noqa: BLE001 - told of by whoever takes it
        return error
