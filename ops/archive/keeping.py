"""Turns one record of a stream into what the archiver keeps: a row, with what belongs to it stored before."""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from bus.ports import Bus, Record
from bus.subjects import Subjects
from ops.archive.disk_room import when_disk_has_room
from ops.archive.episodes import StoredEpisode
from ops.archive.screenshots import CutRecord, ScreenshotStore, cut
from ops.archive.stream_source import read_episode, stored_judgement
from ops.archive.tables import JUDGEMENTS, TRAJECTORIES, Row, judgement_row, trajectory_row


@dataclass(frozen=True, slots=True)
class Kept:
    """One row, and what is wrong with it."""

    row: Row
    num_bytes: int
    fault: str = ""
    """Why the row does not hold all that it should."""
    episode: str = ""


class Keeper(Protocol):
    @property
    def schema(self) -> pa.Schema: ...
    @property
    def screenshot_bytes(self) -> int: ...

    async def keep(self, record: Record) -> Kept:
        """Raises `MessageCorrupt` when what belongs to the record cannot be read."""
        ...

    def sync(self) -> None:
        """Forces everything that kept rows refer to to disk."""
        ...


@dataclass(frozen=True)
class EpisodeKeeper:
    """Episodes with their chains; screenshots become files at once, so that memory holds none."""

    bus: Bus
    subjects: Subjects
    screenshots: ScreenshotStore
    schema: pa.Schema = TRAJECTORIES

    @property
    def screenshot_bytes(self) -> int:
        return self.screenshots.num_bytes

    async def keep(self, record: Record) -> Kept:
        episode = await read_episode(self.bus, self.subjects, record, sound=True)
        records = await when_disk_has_room(lambda: self._cut(episode))
        num_bytes = len(episode.trajectory_data) + sum(len(cut_record.data) for cut_record in records)
        fault = "" if episode.is_complete else f"{len(records)} records are left of the chain: the rest aged out"
        return Kept(trajectory_row(record.seq, episode, records), num_bytes, fault, episode.episode)

    def _cut(self, episode: StoredEpisode) -> list[CutRecord]:
        records = []
        for record in episode.records:
            rest, screenshot = cut(record)
            if screenshot is not None:
                self.screenshots.put(screenshot)
            records.append(rest)
        return records

    def sync(self) -> None:
        self.screenshots.sync()


@dataclass(frozen=True)
class JudgementKeeper:
    """Judgements, which hold no screenshots."""

    schema: pa.Schema = JUDGEMENTS
    screenshot_bytes: int = 0

    async def keep(self, record: Record) -> Kept:
        return Kept(judgement_row(record.seq, stored_judgement(record)), len(record.data))

    def sync(self) -> None:
        return
