"""Weights over the bus as what changed, on both buses: bit for bit what was announced, whoever is killed or comes late."""

import random
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from bus.lineage import all_announced
from bus.ports import Bus
from bus.weight_routes import Catalogue
from schemas.errors import BusUnavailable, CheckpointCorrupt, WeightsUnavailable
from schemas.messages import Checkpoint
from tests.contract.backends import SUBJECTS, Backend
from tests.support.bus.trainer_disk import TrainerDisk, sources
from tests.support.bus.weight_world import (
    CHUNK,
    CONFIG,
    Line,
    checkpoint_of,
    content,
    folder_of,
    read,
    served,
    similar_files,
    write,
)
from trainer.versions.announcements import Announcements
from trainer.versions.weight_publishing import WeightPublisher

pytestmark = [pytest.mark.anyio]
_NUM_CHUNKS = 72
"""Of a whole version."""


@dataclass
class SimilarVersions(TrainerDisk):
    """Whose folders stay on the trainer's disk, and are announced under an address that no policy has."""

    def folder(self, version: int) -> Path:
        return folder_of(self.root, version, similar_files(version))

    def written(self, version: int) -> Checkpoint:
        files = similar_files(version)
        return checkpoint_of(write(self.folder(version), files), version, files)

    async def announce(self, version: int, *, base: int | None = None) -> Checkpoint:
        return await self.announce_files(version, similar_files(version))

    async def announce_files(self, version: int, files: dict[str, bytes]) -> Checkpoint:
        folder = write(folder_of(self.root, version, files), files)
        announced = await self.announcements.announce(checkpoint_of(folder, version, files))
        return msgspec.structs.replace(announced, uri="file:///elsewhere/v")

    async def killed_while_sending(self, version: int) -> None:
        """After a chunk: of a difference, before the announcement."""
        bus = Counted(self.bus, 1).port
        with pytest.raises(Killed):
            await Announcements(bus, SUBJECTS, WeightPublisher(bus, SUBJECTS, CONFIG)).announce(self.written(version))


class Killed(Exception):
    """Nobody handles it."""


@dataclass
class Counted:
    """A connection on which so many chunks can be written."""

    bus: Bus
    num_left: int

    @property
    def port(self) -> Bus:
        return cast(Bus, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bus, name)

    async def append(self, stream: str, subject: str, message: Any, **options: Any) -> int:
        if not self.num_left:
            raise Killed
        self.num_left -= 1
        return await self.bus.append(stream, subject, message, **options)


@pytest.fixture
def disk(backend: Backend, tmp_path: Path) -> SimilarVersions:
    return SimilarVersions(backend.bus, tmp_path / "trainer")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "policy"


async def test_what_changed_is_sent_and_fetched_alone(disk: SimilarVersions, backend: Backend, cache: Path) -> None:
    line = Line(backend.other)
    for version in (1, 2, 3):
        checkpoint = await disk.announce(version)
        assert read(await sources(line.port, cache).folder(checkpoint)) == served(similar_files(version))
    assert _NUM_CHUNKS < len(line.carried) < _NUM_CHUNKS + 10
    assert await disk.num_written() == len(line.carried)


async def test_whoever_comes_late_gets_the_newest(disk: SimilarVersions, backend: Backend, cache: Path) -> None:
    for version in range(1, 5):
        checkpoint = await disk.announce(version)
    line = Line(backend.other)
    assert read(await sources(line.port, cache).folder(checkpoint)) == served(similar_files(4))
    assert len(line.carried) < _NUM_CHUNKS + 15


async def test_a_policy_that_missed_some_goes_on_from_what_it_has(
    disk: SimilarVersions, backend: Backend, cache: Path
) -> None:
    line = Line(backend.other)
    await sources(line.port, cache).folder(await disk.announce(1))
    for version in range(2, 6):
        checkpoint = await disk.announce(version)
    assert read(await sources(line.port, cache).folder(checkpoint)) == served(similar_files(5))
    assert len(line.carried) < _NUM_CHUNKS + 20


async def test_a_base_model_on_a_policys_own_disk_is_gone_on_from(
    disk: SimilarVersions, backend: Backend, cache: Path, tmp_path: Path
) -> None:
    first = await disk.announce(0)
    line, own = Line(backend.other), write(tmp_path / "model", served(similar_files(0)))
    policy = sources(line.port, cache, own)
    assert await policy.folder(first) == own
    assert read(await policy.folder(await disk.announce(1))) == served(similar_files(1))
    assert len(line.carried) < 10


async def test_fifty_versions_are_whole_whoever_is_killed(disk: SimilarVersions, backend: Backend, cache: Path) -> None:
    """The policy is cut off in the middle of every third version; the trainer is killed before every fourth is announced,
    and finds its disk without differences at every eighth."""
    rng, most_stored = random.Random(0), 0
    for version in range(50):
        if version % 4 == 3:
            await disk.killed_while_sending(version)
        if version % 8 == 7:
            shutil.rmtree(disk.root / ".differences")
        checkpoint = await disk.announce(version)
        if version % 3 == 1:
            with suppress(BusUnavailable):
                await sources(Line(backend.other, breaks_after=rng.randrange(2)).port, cache).folder(checkpoint)
        if version % 5 != 4:
            assert read(await sources(backend.other, cache).folder(checkpoint)) == served(similar_files(version))
        most_stored = max(most_stored, await disk.num_stored())
    late = sources(backend.other, cache.with_name("late"))
    assert read(await late.folder(checkpoint)) == served(similar_files(49))
    assert most_stored <= 3 * _NUM_CHUNKS, "room for one version more than are kept"
    assert await disk.num_written() < 0.3 * 50 * _NUM_CHUNKS
    needed = Catalogue.of(await all_announced(disk.bus, SUBJECTS)).needed([checkpoint])
    assert {path.name for path in (disk.root / ".differences").iterdir()} <= needed


async def test_where_what_they_begin_with_is_lost_the_newest_is_sent_whole(
    disk: SimilarVersions, backend: Backend, cache: Path
) -> None:
    first, second = await disk.announce(1), await disk.announce(2)
    await disk.bus.purge(SUBJECTS.weight_chunks, SUBJECTS.weights_of(first.files[0].sha256))
    with pytest.raises(WeightsUnavailable):
        await sources(backend.other, cache).folder(second)
    assert (await disk.announcements.begin(disk.root, disk.root)).version == 2
    assert read(await sources(backend.other, cache).folder(second)) == served(similar_files(2))


async def test_weights_that_were_announced_and_removed_long_ago_come_again(
    disk: SimilarVersions, backend: Backend, cache: Path
) -> None:
    """As where training returns to a good version."""
    for version in range(36):
        await disk.announce(version)
    again = await disk.announce_files(36, similar_files(1))
    assert read(await sources(backend.other, cache).folder(again)) == served(similar_files(1))


async def test_a_damaged_base_is_found_out_and_the_file_made_anew(
    disk: SimilarVersions, backend: Backend, cache: Path
) -> None:
    policy = sources(backend.other, cache)
    folder = await policy.folder(await disk.announce(1))
    second = await disk.announce(2)
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(1000)
        file.write(b"damaged")
    with pytest.raises(CheckpointCorrupt, match="is not what was announced"):
        await policy.folder(second)
    assert read(await policy.folder(second)) == served(similar_files(2))


async def test_a_base_that_changed_on_the_trainers_disk_is_none(disk: SimilarVersions, backend: Backend, cache: Path) -> None:
    await disk.announce(1)
    (disk.folder(1) / "model.safetensors").write_bytes(content("something else", 70 * CHUNK))
    second = await disk.announce(2)
    assert second.differences == ()
    assert read(await sources(backend.other, cache).folder(second)) == served(similar_files(2))
