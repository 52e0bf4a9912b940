"""Weights over the bus, on both buses: what a policy gets is what was announced, whatever was killed, cut or damaged."""

import random
import shutil
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec
import pytest

from agents.starting_weights import starting_weights
from agents.weight_sources import WeightSources
from agents.weights import AnnouncedWeights
from bus.background import background
from bus.ports import Bus
from bus.weight_chunks import chunk_of, put
from bus.weight_routes import Catalogue
from schemas.errors import BusUnavailable, CheckpointCorrupt, WeightsUnavailable
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint
from tests.contract.backends import SUBJECTS, Backend
from tests.deadlines import HANGS_S
from tests.support.bus.weight_world import (
    CHUNK,
    CONFIG,
    NUM_CHUNKS,
    NUM_WEIGHT_CHUNKS,
    Line,
    checkpoint_of,
    content,
    folder_of,
    read,
    served,
    similar_files,
    version_files,
    write,
)
from trainer.versions.announcements import Announcements
from trainer.versions.weight_publishing import WeightPublisher

pytestmark = [pytest.mark.anyio]


class HidingPublisher(WeightPublisher):
    """Takes the folder away before anybody hears of it, as if it were on another machine's disk."""

    async def send(self, folder: Path, checkpoint: Checkpoint, announced: Sequence[Checkpoint] = ()) -> None:
        await super().send(folder, checkpoint, announced)
        shutil.rmtree(folder)


@dataclass
class TrainerDisk:
    """A trainer that announces versions from a folder that policies never see."""

    bus: Bus
    root: Path

    @property
    def announcements(self) -> Announcements:
        return Announcements(self.bus, SUBJECTS, WeightPublisher(self.bus, SUBJECTS, CONFIG))

    def written(self, version: int) -> Checkpoint:
        folder = write(folder_of(self.root, version), version_files(version))
        return checkpoint_of(folder, version, version_files(version))

    async def announce(self, version: int, *, base: int | None = None) -> Checkpoint:
        """`base`: it is an adapter of this version."""
        based = None if base is None else PolicyVersion(base)
        checkpoint = msgspec.structs.replace(self.written(version), base=based)
        await Announcements(self.bus, SUBJECTS, HidingPublisher(self.bus, SUBJECTS, CONFIG)).announce(checkpoint)
        return checkpoint

    async def num_written(self) -> int:
        return await self.bus.last_seq(SUBJECTS.weight_chunks)

    async def num_stored(self) -> int:
        return len(await self.bus.subjects(SUBJECTS.weight_chunks, SUBJECTS.everything("weights")))


@dataclass
class SimilarVersions(TrainerDisk):
    """Whose folders stay on the trainer's disk, and are announced under an address that no policy has."""

    def folder(self, version: int) -> Path:
        return folder_of(self.root, version, similar_files(version))

    def written(self, version: int) -> Checkpoint:
        files = similar_files(version)
        return checkpoint_of(write(self.folder(version), files), version, files)

    async def announce(self, version: int, *, base: int | None = None) -> Checkpoint:
        announced = await self.announcements.announce(self.written(version))
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
def trainer(backend: Backend, tmp_path: Path) -> TrainerDisk:
    return TrainerDisk(backend.bus, tmp_path / "trainer")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "policy"


def sources(bus: Bus, cache: Path, base: Path | None = None) -> WeightSources:
    return WeightSources(bus, SUBJECTS, CONFIG, cache=cache, base=base)


class TestPublishing:
    async def test_a_version_is_sent_without_what_the_trainer_alone_needs(self, trainer: TrainerDisk) -> None:
        await trainer.announce(1)
        assert await trainer.num_written() == await trainer.num_stored() == NUM_CHUNKS

    async def test_a_file_that_did_not_change_is_not_sent_again(self, trainer: TrainerDisk) -> None:
        await trainer.announce(1)
        await trainer.announce(2)
        assert await trainer.num_written() == NUM_CHUNKS + NUM_WEIGHT_CHUNKS

    async def test_a_killed_trainer_sends_only_what_is_missing(self, trainer: TrainerDisk) -> None:
        checkpoint = trainer.written(1)
        data = version_files(1)["model.safetensors"]
        for begin in (0, 2 * CHUNK):
            await put(trainer.bus, SUBJECTS, chunk_of(checkpoint.files[0], begin, data[begin : begin + CHUNK]))
        await trainer.announcements.announce(checkpoint)
        assert await trainer.num_written() == NUM_CHUNKS

    async def test_a_trainer_that_begins_again_makes_its_newest_version_whole(self, trainer: TrainerDisk, cache: Path) -> None:
        checkpoint = trainer.written(1)
        await Announcements(trainer.bus, SUBJECTS).announce(checkpoint)
        assert await trainer.announcements.begin(trainer.root, trainer.root) == checkpoint
        shutil.rmtree(trainer.root)
        assert read(await sources(trainer.bus, cache).folder(checkpoint)) == served(version_files(1))

    async def test_the_newest_two_versions_stay(self, trainer: TrainerDisk, backend: Backend, cache: Path) -> None:
        first, *kept = [await trainer.announce(version) for version in (1, 2, 3)]
        assert await trainer.num_stored() == NUM_CHUNKS + NUM_WEIGHT_CHUNKS
        for checkpoint in kept:
            folder = await sources(backend.other, cache).folder(checkpoint)
            assert read(folder) == served(version_files(checkpoint.version))
        with pytest.raises(WeightsUnavailable, match="version 1 left the bus: 3 is newer"):
            await sources(backend.other, cache).folder(first)

    async def test_the_model_of_the_newest_adapters_stays(self, trainer: TrainerDisk, backend: Backend, cache: Path) -> None:
        await trainer.announce(0)
        for version in (1, 2, 3):
            await trainer.announce(version, base=0)
        start = sources(backend.other, cache)
        folder, version = await starting_weights(backend.other, SUBJECTS, start)
        assert (version, read(folder)) == (0, served(version_files(0)))
        served_by = Served()
        weights = AnnouncedWeights(backend.other, SUBJECTS, served_by.load, version, start)
        for newest in (4, 5):
            await trainer.announce(newest, base=0)
            await weights.catch_up()
        assert [each for each, _ in served_by.loaded] == [4, 5]
        assert read(folder) == served(version_files(0)), "a worker that is started anew begins with it"

    async def test_nothing_is_announced_that_cannot_be_read(self, trainer: TrainerDisk) -> None:
        checkpoint = trainer.written(1)
        (folder_of(trainer.root, 1) / "tokenizer.json").unlink()
        with pytest.raises(CheckpointCorrupt, match=r"tokenizer\.json cannot be read"):
            await trainer.announcements.announce(checkpoint)
        assert await trainer.announcements.newest() is None


class TestDifferences:
    """Of weights of which little changes from version to version."""

    NUM_CHUNKS = 72
    """Of a whole version."""

    @pytest.fixture
    def disk(self, trainer: TrainerDisk) -> "SimilarVersions":
        return SimilarVersions(trainer.bus, trainer.root)

    async def test_what_changed_is_sent_and_fetched_alone(
        self, disk: "SimilarVersions", backend: Backend, cache: Path
    ) -> None:
        line = Line(backend.other)
        for version in (1, 2, 3):
            checkpoint = await disk.announce(version)
            assert read(await sources(line.port, cache).folder(checkpoint)) == served(similar_files(version))
        assert self.NUM_CHUNKS < len(line.carried) < self.NUM_CHUNKS + 10
        assert await disk.num_written() == len(line.carried)

    async def test_whoever_comes_late_gets_the_newest(self, disk: "SimilarVersions", backend: Backend, cache: Path) -> None:
        for version in range(1, 5):
            checkpoint = await disk.announce(version)
        line = Line(backend.other)
        assert read(await sources(line.port, cache).folder(checkpoint)) == served(similar_files(4))
        assert len(line.carried) < self.NUM_CHUNKS + 15

    async def test_a_policy_that_missed_some_goes_on_from_what_it_has(
        self, disk: "SimilarVersions", backend: Backend, cache: Path
    ) -> None:
        line = Line(backend.other)
        await sources(line.port, cache).folder(await disk.announce(1))
        for version in range(2, 6):
            checkpoint = await disk.announce(version)
        assert read(await sources(line.port, cache).folder(checkpoint)) == served(similar_files(5))
        assert len(line.carried) < self.NUM_CHUNKS + 20

    async def test_a_base_model_on_a_policys_own_disk_is_gone_on_from(
        self, disk: "SimilarVersions", backend: Backend, cache: Path, tmp_path: Path
    ) -> None:
        first = await disk.announce(0)
        line, own = Line(backend.other), write(tmp_path / "model", served(similar_files(0)))
        policy = sources(line.port, cache, own)
        assert await policy.folder(first) == own
        assert read(await policy.folder(await disk.announce(1))) == served(similar_files(1))
        assert len(line.carried) < 10

    async def test_fifty_versions_are_whole_whoever_is_killed(
        self, disk: "SimilarVersions", backend: Backend, cache: Path
    ) -> None:
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
        assert most_stored <= 3 * self.NUM_CHUNKS, "room for one version more than are kept"
        assert await disk.num_written() < 0.3 * 50 * self.NUM_CHUNKS
        needed = Catalogue.of(await disk.announcements.all()).needed([checkpoint])
        assert {path.name for path in (disk.root / ".differences").iterdir()} <= needed

    async def test_where_what_they_begin_with_is_lost_the_newest_is_sent_whole(
        self, disk: "SimilarVersions", backend: Backend, cache: Path
    ) -> None:
        first, second = await disk.announce(1), await disk.announce(2)
        await disk.bus.purge(SUBJECTS.weight_chunks, SUBJECTS.weights_of(first.files[0].sha256))
        with pytest.raises(WeightsUnavailable):
            await sources(backend.other, cache).folder(second)
        assert (await disk.announcements.begin(disk.root, disk.root)).version == 2
        assert read(await sources(backend.other, cache).folder(second)) == served(similar_files(2))

    async def test_a_damaged_base_is_found_out_and_the_file_made_anew(
        self, disk: "SimilarVersions", backend: Backend, cache: Path
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

    async def test_a_base_that_changed_on_the_trainers_disk_is_none(
        self, disk: "SimilarVersions", backend: Backend, cache: Path
    ) -> None:
        await disk.announce(1)
        (disk.folder(1) / "model.safetensors").write_bytes(content("something else", 70 * CHUNK))
        second = await disk.announce(2)
        assert second.differences == ()
        assert read(await sources(backend.other, cache).folder(second)) == served(similar_files(2))


class TestFetching:
    async def test_what_arrives_is_what_was_announced(self, trainer: TrainerDisk, backend: Backend, cache: Path) -> None:
        checkpoint = await trainer.announce(1)
        folder = await sources(backend.other, cache).folder(checkpoint)
        assert folder.parent == cache
        assert read(folder) == served(version_files(1))

    async def test_a_folder_that_can_be_read_here_is_not_fetched(self, trainer: TrainerDisk, cache: Path) -> None:
        checkpoint = trainer.written(1)
        await trainer.announcements.announce(checkpoint)
        assert await sources(trainer.bus, cache).folder(checkpoint) == folder_of(trainer.root, 1)
        (folder_of(trainer.root, 1) / "model.safetensors").write_bytes(content("something else", 3 * CHUNK + 1))
        assert (await sources(trainer.bus, cache).folder(checkpoint)).parent == cache

    async def test_a_file_that_did_not_change_is_not_fetched_again(self, trainer: TrainerDisk, cache: Path) -> None:
        line = Line(trainer.bus)
        for version in (1, 2):
            await sources(line.port, cache).folder(await trainer.announce(version))
        assert len(line.carried) == NUM_CHUNKS + NUM_WEIGHT_CHUNKS

    async def test_a_killed_policy_fetches_only_what_it_lacks(self, trainer: TrainerDisk, cache: Path) -> None:
        checkpoint = await trainer.announce(1)
        cut = Line(trainer.bus, breaks_after=3)
        with pytest.raises(BusUnavailable):
            await sources(cut.port, cache).folder(checkpoint)
        (partial,) = (cache / "files").glob("*.partial")
        kept = len(partial.with_suffix(".journal").read_text().splitlines())
        assert kept >= 1
        line = Line(trainer.bus)
        assert read(await sources(line.port, cache).folder(checkpoint)) == served(version_files(1))
        assert len(line.carried) == NUM_CHUNKS - kept

    async def test_a_piece_that_was_damaged_on_the_disk_is_fetched_again(self, trainer: TrainerDisk, cache: Path) -> None:
        checkpoint = await trainer.announce(1)
        with pytest.raises(BusUnavailable):
            await sources(Line(trainer.bus, breaks_after=3).port, cache).folder(checkpoint)
        (partial,) = (cache / "files").glob("*.partial")
        journal = partial.with_suffix(".journal")
        kept = journal.read_text().splitlines()
        begin = int(kept[0].split()[0])
        with partial.open("r+b") as file:
            file.seek(begin)
            file.write(bytes([content("weights 1", 3 * CHUNK + 1)[begin] ^ 1]))
        with journal.open("a") as torn:
            torn.write("1000 20")
        line = Line(trainer.bus)
        assert read(await sources(line.port, cache).folder(checkpoint)) == served(version_files(1))
        assert len(line.carried) == NUM_CHUNKS - len(kept) + 1

    async def test_a_flipped_byte_is_refused_and_fetched_again(self, trainer: TrainerDisk, cache: Path) -> None:
        checkpoint = await trainer.announce(1)
        line = Line(trainer.bus, flips=2)
        assert read(await sources(line.port, cache).folder(checkpoint)) == served(version_files(1))
        assert len(line.carried) == NUM_CHUNKS + 2

    async def test_pieces_that_are_not_the_files_are_refused(self, trainer: TrainerDisk, cache: Path) -> None:
        checkpoint = trainer.written(1)
        await put(trainer.bus, SUBJECTS, chunk_of(checkpoint.files[0], 0, content("something else", 3 * CHUNK + 1)))
        await Announcements(trainer.bus, SUBJECTS).announce(checkpoint)
        shutil.rmtree(trainer.root)
        with pytest.raises(CheckpointCorrupt, match=r"what was fetched of model\.safetensors does not match its hash"):
            await sources(trainer.bus, cache).folder(checkpoint)
        assert list((cache / "files").iterdir()) == []

    async def test_a_missing_piece_is_waited_for(self, trainer: TrainerDisk, backend: Backend, cache: Path) -> None:
        checkpoint = trainer.written(1)
        await Announcements(trainer.bus, SUBJECTS).announce(checkpoint)
        publisher = WeightPublisher(trainer.bus, SUBJECTS, CONFIG)
        hidden = trainer.root.rename(trainer.root.with_name("hidden"))
        line, found = Line(backend.other), list[Path]()
        patient = replace(CONFIG, weights_timeout_s=20.0)

        async def fetch() -> None:
            found.append(await WeightSources(line.port, SUBJECTS, patient, cache=cache, base=None).folder(checkpoint))

        async with anyio.create_task_group() as group:
            group.start_soon(fetch)
            await publisher.send(folder_of(hidden, 1), checkpoint)
        assert read(found[0]) == served(version_files(1))

    async def test_a_version_that_was_damaged_on_the_disk_is_made_again(self, trainer: TrainerDisk, cache: Path) -> None:
        checkpoint = await trainer.announce(1)
        folder = await sources(trainer.bus, cache).folder(checkpoint)
        with (folder / "tokenizer.json").open("r+b") as file:
            file.write(b"x")
        line = Line(trainer.bus)
        assert read(await sources(line.port, cache).folder(checkpoint)) == served(version_files(1))
        assert len(line.carried) == NUM_CHUNKS - NUM_WEIGHT_CHUNKS

    async def test_workers_of_one_machine_fetch_a_version_once(self, trainer: TrainerDisk, cache: Path) -> None:
        checkpoint = await trainer.announce(1)
        line = Line(trainer.bus)
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(sources(line.port, cache).folder, checkpoint)
        assert len(line.carried) == NUM_CHUNKS

    async def test_the_disk_keeps_the_newest_two_versions(self, trainer: TrainerDisk, cache: Path) -> None:
        for version in (1, 2, 3):
            await sources(trainer.bus, cache).folder(await trainer.announce(version))
        assert {path.partition("-")[0] for path in read(cache) if path.startswith("v")} == {"v000002", "v000003"}
        assert len(read(cache / "files")) == 4, "two files of weights, the tokenizer, the empty file"

    @pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped"])
    async def test_a_name_that_leads_out_of_the_folder_is_refused(self, trainer: TrainerDisk, cache: Path, name: str) -> None:
        checkpoint = await trainer.announce(1)
        files = (msgspec.structs.replace(checkpoint.files[0], path=name),)
        with pytest.raises(CheckpointCorrupt, match="lies outside"):
            await sources(trainer.bus, cache).folder(msgspec.structs.replace(checkpoint, files=files))


class Served:
    """What an engine was told to load."""

    def __init__(self) -> None:
        self.loaded: list[tuple[int, dict[str, bytes]]] = []
        self.has_loaded = anyio.Event()

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        self.loaded.append((version, read(folder)))
        self.has_loaded.set()


class TestServing:
    async def test_the_old_version_is_served_while_the_new_one_cannot_be_had(self, trainer: TrainerDisk, cache: Path) -> None:
        served_by = Served()
        weights = AnnouncedWeights(trainer.bus, SUBJECTS, served_by.load, PolicyVersion(0), sources(trainer.bus, cache))
        await trainer.announce(1)
        await weights.catch_up()
        checkpoint = trainer.written(2)
        await Announcements(trainer.bus, SUBJECTS).announce(checkpoint)
        shutil.rmtree(trainer.root)
        with pytest.raises(WeightsUnavailable, match="not whole on the bus"):
            await sources(trainer.bus, cache).folder(checkpoint)
        await weights.catch_up()
        assert [version for version, _ in served_by.loaded] == [1]
        write(folder_of(trainer.root, 2), version_files(2))
        await trainer.announcements.begin(trainer.root, trainer.root)
        shutil.rmtree(trainer.root)
        await weights.catch_up()
        assert served_by.loaded[1:] == [(2, served(version_files(2)))]

    async def test_a_version_that_is_deleted_while_it_is_loaded_is_loaded_whole(
        self, trainer: TrainerDisk, cache: Path
    ) -> None:
        loaded = []

        async def load(folder: Path, version: PolicyVersion) -> None:
            shutil.rmtree(folder_of(trainer.root, 1))
            loaded.append((version, read(folder)))

        await Announcements(trainer.bus, SUBJECTS).announce(trainer.written(1))
        weights = AnnouncedWeights(trainer.bus, SUBJECTS, load, PolicyVersion(0), sources(trainer.bus, cache))
        await weights.catch_up()
        assert loaded == [(1, served(version_files(1)))]
        assert read(cache) == {}, "nothing is held any more"

    async def test_a_version_that_is_deleted_before_it_is_loaded_makes_way_for_the_newest(
        self, trainer: TrainerDisk, cache: Path
    ) -> None:
        verified = sources(trainer.bus, cache).folder
        served_by, here = Served(), sources(trainer.bus, cache)

        async def folder(checkpoint: Checkpoint) -> Path:
            found = await verified(checkpoint)
            if checkpoint.version == 1 and found.exists():
                shutil.rmtree(found)
                await Announcements(trainer.bus, SUBJECTS).announce(trainer.written(2))
            return found

        here.folder = folder  # type: ignore[method-assign]
        weights = AnnouncedWeights(trainer.bus, SUBJECTS, served_by.load, PolicyVersion(0), here)
        await Announcements(trainer.bus, SUBJECTS).announce(trainer.written(1))
        async with background(weights.follow):
            with anyio.fail_after(HANGS_S):
                await served_by.has_loaded.wait()
        assert served_by.loaded == [(2, served(version_files(2)))]

    @pytest.mark.parametrize("same", [True, False])
    async def test_a_base_model_of_this_machine_is_compared(
        self, trainer: TrainerDisk, cache: Path, tmp_path: Path, same: bool
    ) -> None:
        await trainer.announce(0)
        base = write(tmp_path / "elsewhere", served(version_files(0 if same else 7)))
        here, line, served_by = sources(trainer.bus, cache, base), Line(trainer.bus), Served()
        assert await starting_weights(trainer.bus, SUBJECTS, here) == (base, 0)
        weights = AnnouncedWeights(line.port, SUBJECTS, served_by.load, PolicyVersion(0), sources(line.port, cache, base))
        await weights.catch_up()
        await weights.catch_up()
        assert served_by.loaded == ([] if same else [(0, served(version_files(0)))])
        assert len(line.carried) == (0 if same else NUM_CHUNKS)

    async def test_without_a_base_model_the_newest_version_is_where_it_starts(self, trainer: TrainerDisk, cache: Path) -> None:
        found = list[tuple[Path, PolicyVersion]]()

        async def start() -> None:
            found.append(await starting_weights(trainer.bus, SUBJECTS, sources(trainer.bus, cache)))

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await anyio.wait_all_tasks_blocked()
            await trainer.announce(0)
        folder, version = found[0]
        assert (version, read(folder)) == (0, served(version_files(0)))


async def test_a_purge_takes_what_is_under_its_filter(backend: Backend, trainer: TrainerDisk) -> None:
    checkpoint = await trainer.announce(1)
    purge: Callable[[], Awaitable[int]] = lambda: backend.bus.purge(  # noqa: E731
        SUBJECTS.weight_chunks, SUBJECTS.weights_of(checkpoint.files[0].sha256)
    )
    assert await purge() == NUM_WEIGHT_CHUNKS
    assert await trainer.num_stored() == NUM_CHUNKS - NUM_WEIGHT_CHUNKS
    assert await purge() == 0
