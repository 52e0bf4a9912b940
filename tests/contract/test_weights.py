"""Weights over the bus, on both buses: what a policy gets is what was announced, whatever was killed, cut or damaged."""

import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec
import pytest

from agents.starting_weights import starting_weights
from agents.weight_sources import WeightSources
from agents.weights import AnnouncedWeights
from bus.background import background
from bus.weight_chunks import chunk_of, put
from schemas.errors import BusUnavailable, CheckpointCorrupt, WeightsUnavailable
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint
from tests.contract.backends import SUBJECTS, Backend
from tests.deadlines import HANGS_S
from tests.support.bus.trainer_disk import TrainerDisk, sources
from tests.support.bus.weight_world import (
    CHUNK,
    CONFIG,
    NUM_CHUNKS,
    NUM_WEIGHT_CHUNKS,
    Line,
    content,
    folder_of,
    read,
    served,
    version_files,
    write,
)
from trainer.versions.announcements import Announcements
from trainer.versions.weight_publishing import WeightPublisher

pytestmark = [pytest.mark.anyio]


@pytest.fixture
def trainer(backend: Backend, tmp_path: Path) -> TrainerDisk:
    return TrainerDisk(backend.bus, tmp_path / "trainer")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "policy"


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
        patient = replace(CONFIG, weights_timeout_s=HANGS_S)

        async def fetch() -> None:
            found.append(await WeightSources(line.port, SUBJECTS, patient, cache=cache, base=None).folder(checkpoint))

        async with anyio.create_task_group() as group:
            group.start_soon(fetch)
            await publisher.send(folder_of(hidden, 1), checkpoint)
        assert read(found[0]) == served(version_files(1))

    async def test_a_machine_that_stood_still_has_not_waited_meanwhile(
        self, trainer: TrainerDisk, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checkpoint = trainer.written(1)
        await Announcements(trainer.bus, SUBJECTS).announce(checkpoint)
        publisher = WeightPublisher(trainer.bus, SUBJECTS, CONFIG)
        hidden = trainer.root.rename(trainer.root.with_name("hidden"))
        clock, stood_still_s, looked, found = anyio.current_time, 0.0, anyio.Event(), list[Path]()
        monkeypatch.setattr(anyio, "current_time", lambda: clock() + stood_still_s)

        class Still(Line):
            async def subjects(self, stream: str, subject_filter: str) -> dict[str, int]:
                nonlocal stood_still_s
                stored = await self.bus.subjects(stream, subject_filter)
                stood_still_s += HANGS_S
                looked.set()
                return stored

        patient = replace(CONFIG, weights_timeout_s=HANGS_S)
        fetching = WeightSources(Still(trainer.bus).port, SUBJECTS, patient, cache=cache, base=None)

        async def fetch() -> None:
            found.append(await fetching.folder(checkpoint))

        async with anyio.create_task_group() as group:
            group.start_soon(fetch)
            await looked.wait()
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

    @pytest.mark.parametrize("same", [True, False])
    async def test_adapters_begin_with_a_base_model_that_was_compared(
        self, trainer: TrainerDisk, cache: Path, tmp_path: Path, same: bool
    ) -> None:
        base = write(tmp_path / "elsewhere", served(version_files(0 if same else 7)))
        here, served_by, found = sources(trainer.bus, cache, base), Served(), list[tuple[Path, PolicyVersion]]()

        async def start() -> None:
            found.append(await starting_weights(trainer.bus, SUBJECTS, here, adapters=True))

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await anyio.wait_all_tasks_blocked()
            await trainer.announce(0)
            await trainer.announce(1, base=0)
        folder, version = found[0]
        assert (version, read(folder), folder == base) == (0, served(version_files(0)), same)
        await AnnouncedWeights(trainer.bus, SUBJECTS, served_by.load, version, here).catch_up()
        assert served_by.loaded == [(1, served(version_files(1)))]

    async def test_no_adapters_are_loaded_onto_a_base_model_that_is_another(
        self, trainer: TrainerDisk, cache: Path, tmp_path: Path
    ) -> None:
        await trainer.announce(0)
        await trainer.announce(1, base=0)
        base, served_by = write(tmp_path / "elsewhere", served(version_files(7))), Served()
        here = sources(trainer.bus, cache, base)
        await AnnouncedWeights(trainer.bus, SUBJECTS, served_by.load, PolicyVersion(0), here).catch_up()
        assert [version for version, _ in served_by.loaded] == [0, 1], "adapters alone would be on another model"

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


@pytest.mark.usefixtures("answers_may_take_their_time")
async def test_a_purge_takes_what_is_under_its_filter(backend: Backend, trainer: TrainerDisk) -> None:
    checkpoint = await trainer.announce(1)
    purge: Callable[[], Awaitable[int]] = lambda: backend.bus.purge(  # noqa: E731
        SUBJECTS.weight_chunks, SUBJECTS.weights_of(checkpoint.files[0].sha256)
    )
    assert await purge() == NUM_WEIGHT_CHUNKS
    assert await trainer.num_stored() == NUM_CHUNKS - NUM_WEIGHT_CHUNKS
    assert await purge() == 0


@pytest.mark.usefixtures("answers_may_take_their_time")
async def test_a_purge_leaves_what_was_written_behind_the_sequence_that_it_is_up_to(backend: Backend) -> None:
    """So that it may be repeated though somebody else has written there since."""
    subject = SUBJECTS.weights_of("0" * 64)
    chunks = [await backend.bus.append_bytes(SUBJECTS.weight_chunks, f"{subject[:-1]}{number}", b"x") for number in range(3)]
    assert await backend.bus.purge(SUBJECTS.weight_chunks, subject, up_to=chunks[1]) == 2
    assert await backend.bus.purge(SUBJECTS.weight_chunks, subject, up_to=chunks[1]) == 0
    assert [stored.seq for stored in await backend.bus.read_bytes(SUBJECTS.weight_chunks, subject)] == chunks[2:]
