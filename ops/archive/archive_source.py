"""Reads stored episodes from an archive's folder. Every hash is checked on the way; damage is named and stops the reader."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
import pyarrow as pa
import pyarrow.parquet as pq

from ops.archive.episodes import StoredEpisode, StoredJudgement
from ops.archive.folder import ArchiveFolder, Part
from ops.archive.tables import ROWS_PER_GROUP, Row, read_episode, read_judgement, read_trajectory
from schemas.errors import ArchiveDamaged
from schemas.ids import EpisodeId
from schemas.messages import Trajectory

Place = tuple[int, int]
"""Where a judgement is: number of its part, number of its row."""
_GROUPS_KEPT = 8
_TRAJECTORY_COLUMNS = ("episode", "data", "sha256")
"""What `read_trajectory` needs: chains are most of a part."""
_STORED_COLUMNS = ("seq", "time_s", "data")
"""The record itself."""


@dataclass(frozen=True)
class ArchiveSource:
    """Satisfies `EpisodeSource`."""

    folder: ArchiveFolder

    async def episodes(self) -> AsyncIterator[StoredEpisode]:
        self.folder.describe()
        judged = await anyio.to_thread.run_sync(JudgementIndex, self.folder.judgements.parts())
        for part in self.folder.trajectories.parts():
            for group in range(await anyio.to_thread.run_sync(num_groups, part)):
                for row in await anyio.to_thread.run_sync(read_group, part, group):
                    yield await anyio.to_thread.run_sync(self._episode, part, row, judged)

    async def trajectories(self) -> AsyncIterator[Trajectory]:
        self.folder.describe()
        for part in self.folder.trajectories.parts():
            for group in range(await anyio.to_thread.run_sync(num_groups, part)):
                for row in await anyio.to_thread.run_sync(read_group, part, group, _TRAJECTORY_COLUMNS):
                    with naming(part.path):
                        trajectory = read_trajectory(row)
                    yield trajectory

    async def judgements(self) -> AsyncIterator[StoredJudgement]:
        self.folder.describe()
        for part in self.folder.judgements.parts():
            for group in range(await anyio.to_thread.run_sync(num_groups, part)):
                for row in await anyio.to_thread.run_sync(read_group, part, group):
                    with naming(part.path):
                        judgement = read_judgement(row)
                    yield judgement

    async def rubrics(self) -> frozenset[str]:
        self.folder.describe()
        found: set[str] = set()
        for part in self.folder.judgements.parts():
            found.update(await anyio.to_thread.run_sync(_column, part, "rubric"))
        return frozenset(found)

    def _episode(self, part: Part, row: Row, judged: "JudgementIndex") -> StoredEpisode:
        judgements = judged.of(EpisodeId(row["episode"]))
        with naming(part.path):
            return read_episode(row, self.folder.screenshots, judgements)


class JudgementIndex:
    """Finds the judgements of an episode; holds their places, and the rows read last."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self._parts = parts
        self._places: dict[EpisodeId, list[Place]] = {}
        self._groups: dict[Place, list[Row]] = {}
        for number, part in enumerate(parts):
            for row, episode in enumerate(_column(part, "episode")):
                self._places.setdefault(EpisodeId(episode), []).append((number, row))

    def of(self, episode: EpisodeId) -> tuple[StoredJudgement, ...]:
        """In the order in which they were given."""
        found = []
        for number, row in self._places.get(episode, ()):
            with naming(self._parts[number].path):
                found.append(read_judgement(self._group(number, row // ROWS_PER_GROUP)[row % ROWS_PER_GROUP]))
        return tuple(found)

    def _group(self, number: int, group: int) -> list[Row]:
        place = (number, group)
        if place not in self._groups:
            self._groups[place] = read_group(self._parts[number], group)
            while len(self._groups) > _GROUPS_KEPT:
                del self._groups[next(iter(self._groups))]
        return self._groups[place]


def _column(part: Part, name: str) -> list[str]:
    with naming(part.path):
        values: list[str] = pq.read_table(part.path, columns=[name], page_checksum_verification=True)[name].to_pylist()
        return values


def num_groups(part: Part) -> int:
    with naming(part.path), pq.ParquetFile(part.path) as file:
        count: int = file.num_row_groups
        return count


def read_group(part: Part, group: int, columns: Sequence[str] | None = None) -> list[Row]:
    """Raises `ArchiveDamaged` when the file cannot be read or a page does not match its checksum."""
    with naming(part.path), pq.ParquetFile(part.path, page_checksum_verification=True) as file:
        rows: list[Row] = file.read_row_group(group, columns=columns).to_pylist()
        return rows


def first_row(part: Part) -> Row:
    """Without its chain. Raises `ArchiveDamaged`."""
    return read_group(part, 0, _STORED_COLUMNS)[0]


def last_row(part: Part) -> Row:
    """Without its chain. Raises `ArchiveDamaged`."""
    return read_group(part, num_groups(part) - 1, _STORED_COLUMNS)[-1]


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Says which file an error is about."""
    try:
        yield
    except ArchiveDamaged as error:
        raise ArchiveDamaged(f"{path}: {error}") from error
    except (pa.ArrowException, OSError, KeyError, TypeError) as error:
        raise ArchiveDamaged(f"{path} cannot be read ({_first_line(error)})") from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
