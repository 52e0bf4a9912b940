"""The archive over the in-memory bus: nothing changes on the way through files, whatever kills the archiver."""

import asyncio
import contextlib
import errno
import hashlib
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import msgspec
import pyarrow.parquet as pq
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bus import chain
from bus.codec import encode
from bus.memory import MemoryBus
from bus.ports import Lease, Record, StoredBytes
from bus.subjects import Subjects
from ops.archive import archiver, disk_room, following, screenshots, stream_source, tables
from ops.archive.archive_source import ArchiveSource
from ops.archive.archiver import Archived
from ops.archive.episodes import StoredRecord
from ops.archive.folder import ArchiveFolder
from ops.archive.importer import Importer
from ops.archive.screenshots import ScreenshotStore, cut, join, screenshot_path
from ops.archive.stream_source import StreamSource, records_to_the_end
from ops.archive.verify import refuse_damage, verify
from ops.audit.audit import audit
from ops.config.loading import dump_config
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.errors import ArchiveDamaged, ArchiveError, BusUnavailable, ConfigurationError, ImportConflict
from schemas.ids import RunName
from schemas.messages import Split
from tests import builders
from tests.deadlines import HANGS_S
from tests.support.runs import archive_world as world

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(RunName("test"), 3)
TARGET = Subjects(RunName("second"), 1)


def new_bus(subjects: Subjects = SUBJECTS) -> MemoryBus:
    return MemoryBus(subjects, BusConfig(run=subjects.run, num_shards=subjects.num_shards))


async def filled(num_episodes: int = 8) -> MemoryBus:
    bus = new_bus()
    await world.fill(bus, SUBJECTS, num_episodes=num_episodes)
    return bus


async def test_an_archive_holds_what_the_streams_held(tmp_path: Path) -> None:
    bus = await filled()
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    expected = await world.contents(StreamSource(bus, SUBJECTS))
    assert len(expected.episodes) == 8
    assert [len(episode.judgements) for episode in expected.episodes] == [2, 1, 1, 2, 1, 1, 1, 1]
    assert await world.contents(ArchiveSource(folder)) == expected
    assert [ended async for ended in ArchiveSource(folder).trajectories()] == [one.trajectory for one in expected.episodes]
    assert [ended async for ended in StreamSource(bus, SUBJECTS).trajectories()] == [
        one.trajectory for one in expected.episodes
    ]
    assert await ArchiveSource(folder).rubrics() == await StreamSource(bus, SUBJECTS).rubrics() == set(world.RUBRICS)
    found = verify(folder)
    assert (found.num_episodes, found.num_judgements, found.damaged, found.num_gaps) == (8, 10, [], 0)
    assert found.num_records == sum(len(episode.records) for episode in expected.episodes)


async def test_a_screenshot_is_stored_once_and_no_part_holds_one(tmp_path: Path) -> None:
    bus = await filled(1)
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    assert sorted(path.read_bytes() for path in (folder.path / "screenshots").rglob("*.*")) == sorted(
        {world.shot(0).data, world.shot(1).data}
    )
    await world.fill(bus, SUBJECTS, first=8, num_episodes=4)
    parts = b"".join(path.read_bytes() for path in folder.path.rglob("*.parquet"))
    assert world.shot(0).data not in parts


async def test_archiving_again_adds_what_is_new_and_nothing_else(tmp_path: Path) -> None:
    bus = await filled()
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    before = world.files(folder.path)
    await world.archive(bus, SUBJECTS, folder.path)
    assert world.files(folder.path) == before
    await world.fill(bus, SUBJECTS, first=8, num_episodes=3)
    await world.archive(bus, SUBJECTS, folder.path)
    after = world.files(folder.path)
    assert before.items() <= after.items()
    assert await world.contents(ArchiveSource(folder)) == await world.contents(StreamSource(bus, SUBJECTS))
    assert sorted(name for name in after if name not in before and name.endswith("parquet")) == [
        "judgements/000000000011-000000000014.parquet",
        "trajectories/000000000009-000000000011.parquet",
    ]


class Killed(BaseException):
    """Stands for SIGKILL: nobody catches it, so what was being done stays half done."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes the n-th thing that the archiver asks of the disk the last: before it, or half way through it for a write."""
    remaining = 0

    def counting(module: object, name: str) -> None:
        original = getattr(module, name)

        def counted(*arguments: object, **options: object) -> object:
            nonlocal remaining
            remaining -= 1
            if remaining == 0:
                raise Killed
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, counted)

    for module, name in ((os, "fsync"), (Path, "replace"), (Path, "open"), (Path, "mkdir"), (Path, "unlink")):
        counting(module, name)

    def kill(step: int) -> None:
        nonlocal remaining
        remaining = step

    return kill


async def test_killed_at_any_step_and_resumed_it_makes_the_same_archive(
    tmp_path: Path, kill_at: Callable[[int], None]
) -> None:
    bus = await filled(3)
    unharmed = world.files((await world.archive(bus, SUBJECTS, tmp_path / "unharmed", episodes_per_part=2)).path)
    num_kills = 0
    for step in itertools.count(1):
        path = tmp_path / f"killed-{step}"
        kill_at(step)
        try:
            await world.archive(bus, SUBJECTS, path, episodes_per_part=2)
        except* Killed:
            num_kills += 1
        else:
            break
        kill_at(0)
        if ArchiveFolder(path).is_archive:
            assert verify(ArchiveFolder(path)).damaged == []
        await world.archive(bus, SUBJECTS, path, episodes_per_part=2)
        assert world.files(path) == unharmed, f"killed at step {step}"
    assert num_kills > 50


class LosingBus(MemoryBus):
    """Its lease is lost when the n-th chain is read, once."""

    lost_at = 0
    num_losses = 0

    @asynccontextmanager
    async def lease(self, name: str, *, ttl_s: float) -> AsyncIterator[Lease]:
        self._lost = anyio.Event()
        async with super().lease(name, ttl_s=ttl_s):
            yield cast("Lease", SimpleNamespace(wait_lost=self._lost.wait))

    async def read_bytes(self, stream: str, subject_filter: str, *, after_seq: int = 0) -> Sequence[StoredBytes]:
        self.lost_at -= 1
        if self.lost_at == 0:
            self.num_losses += 1
            self._lost.set()
            await anyio.sleep(0.01)
        return await super().read_bytes(stream, subject_filter, after_seq=after_seq)


async def test_a_lost_lease_is_taken_again_and_the_archive_is_the_same(tmp_path: Path) -> None:
    bus = LosingBus(SUBJECTS, BusConfig(run=SUBJECTS.run, num_shards=SUBJECTS.num_shards))
    await world.fill(bus, SUBJECTS, num_episodes=4)
    unharmed = world.files((await world.archive(bus, SUBJECTS, tmp_path / "unharmed", episodes_per_part=2)).path)
    for step in range(1, 5):
        bus.lost_at, folder = step, ArchiveFolder(tmp_path / f"lost-{step}")
        with folder.writing(SUBJECTS.run, dump_config(Config())):
            done = await world.archiver(bus, SUBJECTS, folder, episodes_per_part=2).run(once=True)
        assert bus.num_losses == step
        assert world.files(folder.path) == unharmed, f"lost at episode {step}"
        assert (done.num_episodes, done.num_gaps, done.num_waiting) == (4, 0, 0)


async def test_leftovers_of_a_killed_writer_are_ignored_and_removed(tmp_path: Path) -> None:
    bus = await filled()
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    expected = world.files(folder.path)
    (folder.trajectories.path / "000000000009-000000000012.parquet.partial").write_bytes(b"PAR1 half")
    assert verify(folder).damaged == []
    await world.archive(bus, SUBJECTS, folder.path)
    assert world.files(folder.path) == expected


async def test_one_process_writes_and_only_its_own_run(tmp_path: Path) -> None:
    bus = await filled(1)
    folder = ArchiveFolder(tmp_path / "archive")
    with folder.writing(SUBJECTS.run, ""), pytest.raises(ArchiveError, match="another archiver writes to"):
        await world.archive(bus, SUBJECTS, folder.path)
    with pytest.raises(ConfigurationError, match="is the archive of run test"):
        await world.archive(bus, TARGET, folder.path)


@pytest.fixture
def no_new_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that ends too early is not looked at again."""
    monkeypatch.setattr(following, "_LOOKS", 1)


@pytest.mark.usefixtures("no_new_leader")
@pytest.mark.parametrize("num_episodes", [2, 8, 20])
async def test_a_stream_that_began_again_is_not_mixed_into_the_archive(tmp_path: Path, num_episodes: int) -> None:
    """Shorter than what was archived, as long, and grown past it."""
    folder = await world.archive(await filled(8), SUBJECTS, tmp_path / "archive")
    before = world.files(folder.path)
    again = new_bus()
    await world.fill(again, SUBJECTS, first=100, num_episodes=num_episodes)
    with pytest.raises(ArchiveError, match="the stream began again"):
        await world.archive(again, SUBJECTS, folder.path)
    assert world.files(folder.path) == before


def lose_end(bus: MemoryBus, stream: str, *, behind: int) -> None:
    """What a server does that loses power: it gives the sequences to others."""
    held = bus._stream(stream)
    held.records = {seq: record for seq, record in held.records.items() if seq <= behind}
    held.last_seq = behind


@pytest.mark.usefixtures("no_new_leader")
@pytest.mark.parametrize("num_more", [0, 1, 12])
@pytest.mark.parametrize("behind", [1, 5, 8, 9])
async def test_what_a_stream_has_lost_is_set_aside_and_what_it_holds_is_archived(
    tmp_path: Path, behind: int, num_more: int
) -> None:
    """Whether it has grown past what was archived or not; parts end at 4, 8 and 10."""
    bus = await filled(10)
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    before = world.files(folder.trajectories.path)
    for stream in (SUBJECTS.trajectories, SUBJECTS.judged):
        lose_end(bus, stream, behind=behind)
    await world.fill(bus, SUBJECTS, first=100, num_episodes=num_more)
    with capture_logs() as entries:
        await world.archive(bus, SUBJECTS, folder.path)
    found = verify(folder)
    assert (found.damaged, found.num_gaps) == ([], 0)
    assert await world.contents(ArchiveSource(folder)) == await world.contents(StreamSource(bus, SUBJECTS))
    kept = world.files(folder.trajectories.path)
    aside = world.files(folder.path / "set_aside" / "1" / "trajectories")
    assert {name for name in before if name not in kept or kept[name] != before[name]} <= aside.keys() <= before.keys()
    assert {"archive_set_aside"} == {entry["event"] for entry in entries if entry["event"].startswith("archive_")}
    untouched = world.files(folder.path)
    await world.archive(bus, SUBJECTS, folder.path)
    assert world.files(folder.path) == untouched


def forget(bus: MemoryBus, stream: str, *seqs: int) -> None:
    """What a stream's age limit does."""
    for seq in seqs:
        del bus._stream(stream).records[seq]


async def test_what_aged_out_is_written_down_once(tmp_path: Path) -> None:
    bus = await filled(8)
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    await world.fill(bus, SUBJECTS, first=8, num_episodes=4)
    forget(bus, SUBJECTS.trajectories, 9, 10)
    of = world.task(11, run=SUBJECTS.run, split=Split.EVAL)
    shard = SUBJECTS.episodes(SUBJECTS.shard(of.episode))
    first = (await bus.history(shard, SUBJECTS.chain(of.episode)))[0]
    forget(bus, shard, first.seq)
    for _ in range(2):
        await world.archive(bus, SUBJECTS, folder.path)
        told = [(gap.stream, gap.first_seq, gap.last_seq, gap.episode) for gap in folder.gaps()]
        assert told == [(SUBJECTS.trajectories, 9, 10, ""), (SUBJECTS.trajectories, 12, 12, of.episode)]
    assert verify(folder).damaged == []
    assert [part.first_seq for part in folder.trajectories.parts()] == [1, 5, 11]


async def test_a_chain_that_cannot_be_read_is_a_gap_and_the_rest_is_archived(tmp_path: Path) -> None:
    bus = await filled(3)
    broken = world.task(1, run=SUBJECTS.run)
    bus.store(SUBJECTS.episodes(SUBJECTS.shard(broken.episode)), SUBJECTS.chain(broken.episode)[:-1] + "9.obs.0", b"\xc1")
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    [gap] = folder.gaps()
    assert (gap.first_seq, gap.last_seq) == (2, 2)
    assert [episode.trajectory.task.index async for episode in ArchiveSource(folder).episodes()] == [0, 2]


async def test_the_end_is_found_behind_a_record_that_nobody_can_read(tmp_path: Path) -> None:
    bus = await filled(3)
    bus.store(SUBJECTS.trajectories, SUBJECTS.trajectory(Split.TRAIN, world.task(9, run=SUBJECTS.run).episode), b"\xc1")
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    assert folder.trajectories.position == 3


async def test_a_late_archiver_warns(tmp_path: Path) -> None:
    bus, folder = await filled(2), ArchiveFolder(tmp_path / "archive")
    late = replace(
        world.archiver(bus, SUBJECTS, folder), wall_clock=lambda: time.time() + 0.9 * BusConfig().episodes_max_age_s
    )
    with folder.writing(SUBJECTS.run, ""), structlog.testing.capture_logs() as logs:
        await late.run(once=True)
    assert [log["stream"] for log in logs if log["event"] == "archiver_late"] == [SUBJECTS.trajectories]


@pytest.mark.parametrize(("results_s", "age_s", "late"), [(0, 3600, set()), (10, 9, {SUBJECTS.trajectories, SUBJECTS.judged})])
async def test_an_archiver_warns_of_what_ages_out_alone(tmp_path: Path, results_s: int, age_s: float, late: set[str]) -> None:
    bus, folder = await filled(2), ArchiveFolder(tmp_path / "archive")
    ages = BusConfig(episodes_max_age_s=0, results_max_age_s=results_s)
    archiver = replace(world.archiver(bus, SUBJECTS, folder), bus_config=ages, wall_clock=lambda: time.time() + age_s)
    with folder.writing(SUBJECTS.run, ""), structlog.testing.capture_logs() as logs:
        await archiver.run(once=True)
    assert {log["stream"] for log in logs if log["event"] == "archiver_late"} == late


async def test_a_part_is_written_when_its_time_is_over(tmp_path: Path) -> None:
    bus, folder = await filled(2), ArchiveFolder(tmp_path / "archive")
    num_judged, written = await bus.last_seq(SUBJECTS.judged), anyio.Event()

    def progress(done: Archived) -> None:
        # In however many parts: on a busy machine one may be over between two records.
        if (done.num_episodes, done.num_judgements, done.num_waiting) == (2, num_judged, 0):
            written.set()

    base = world.archiver(bus, SUBJECTS, folder, episodes_per_part=100)
    hasty = replace(base, config=replace(base.config, seconds_per_part=0.05), progress=progress)
    with folder.writing(SUBJECTS.run, ""):
        async with anyio.create_task_group() as group:
            group.start_soon(hasty.run)
            with anyio.fail_after(HANGS_S):
                await written.wait()
            group.cancel_scope.cancel()
    assert await world.contents(ArchiveSource(folder)) == await world.contents(StreamSource(bus, SUBJECTS))


async def test_a_full_disk_makes_the_archiver_wait_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = await filled(3)
    replace_file, refused = Path.replace, set[Path]()

    def full_the_first_time(path: Path, target: Path) -> Path:
        if target.parent.name != "archive" and target not in refused:
            refused.add(target)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return replace_file(path, target)

    monkeypatch.setattr(disk_room, "_PAUSE_S", 0.0)
    monkeypatch.setattr(Path, "replace", full_the_first_time)
    with structlog.testing.capture_logs() as logs:
        folder = await world.archive(bus, SUBJECTS, tmp_path / "archive", episodes_per_part=2)
    assert [log["reason"] for log in logs if log["event"] == "archive_disk_full"][:1] == ["No space left on device"]
    assert verify(folder).damaged == []
    assert await world.contents(ArchiveSource(folder)) == await world.contents(StreamSource(bus, SUBJECTS))


@pytest.mark.parametrize("kind", ["screenshots", "trajectories", "judgements"])
async def test_damage_is_found_named_and_not_imported(tmp_path: Path, kind: str) -> None:
    folder = await world.archive(await filled(), SUBJECTS, tmp_path / "archive")
    victim = sorted(path for path in (folder.path / kind).rglob("*.*") if path.is_file())[0]
    sound = victim.read_bytes()
    for at in range(0, len(sound), max(1, len(sound) // 40)):
        victim.write_bytes(sound[:at] + bytes([sound[at] ^ 0x40]) + sound[at + 1 :])
        with pytest.raises(ArchiveDamaged, match=victim.name):
            refuse_damage(folder)
    victim.unlink()
    if kind == "screenshots":
        with pytest.raises(ArchiveDamaged, match=victim.name):
            await world.contents(ArchiveSource(folder))


async def test_what_a_judgement_took_can_be_queried_and_older_parts_without_it_are_sound(tmp_path: Path) -> None:
    folder = await world.archive(await filled(), SUBJECTS, tmp_path / "archive")
    table = pq.read_table([part.path for part in folder.judgements.parts()])
    assert set(zip(*(table[name].to_pylist() for name in ("num_calls", "cost")), strict=True)) == {(3, 0.25)}
    blocked = dict(zip(table["episode"].to_pylist(), table["blocked"].to_pylist(), strict=True))
    assert {episode for episode, is_blocked in blocked.items() if is_blocked} == {"train-r0000-t2-m0", "train-r0000-t4-m0"}
    older = folder.judgements.parts()[0].path
    rows = pq.read_table(older).drop_columns(["blocked", "num_calls", "cost"])
    pq.write_table(rows, older, row_group_size=tables.ROWS_PER_GROUP, write_page_checksum=True)
    older.with_name(f"{older.name}.sha256").write_text(f"{hashlib.sha256(older.read_bytes()).hexdigest()}  {older.name}\n")
    assert verify(folder).damaged == []


async def test_an_import_gives_the_same_records_under_the_same_identities(tmp_path: Path) -> None:
    bus, target = await filled(), new_bus(TARGET)
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    done = await Importer(bus=target, subjects=TARGET).run(ArchiveSource(folder))
    expected = await world.contents(StreamSource(bus, SUBJECTS))
    assert await world.contents(StreamSource(target, TARGET)) == expected
    assert (done.num_episodes, done.num_judgements, done.num_known) == (8, 10, 0)
    assert (await audit(target, Config(bus_config=BusConfig(run=TARGET.run, num_shards=1)))).findings.broken_chains == ()
    assert await target.last_seq(TARGET.tasks) == 0
    again = await Importer(bus=target, subjects=TARGET).run(ArchiveSource(folder))
    assert (again.num_records, again.num_judgements, again.num_known) == (0, 0, done.num_records + 8 + 10)


@pytest.mark.parametrize("data", [b"\xc1 garbage", encode(world.observation(world.task(1, run=SUBJECTS.run), 1, 6))])
async def test_a_record_that_no_reader_takes_costs_its_episode_alone(tmp_path: Path, data: bytes) -> None:
    """One that is no message, and one of another episode."""
    bus, target = await filled(), new_bus(TARGET)
    source = StreamSource(bus, SUBJECTS)
    expected = await world.contents(source)
    spoilt = expected.episodes[0].episode
    await bus.append_bytes(SUBJECTS.episodes(SUBJECTS.shard(spoilt)), SUBJECTS.chain_record(spoilt, 1, "obs", 6), data)
    assert await world.contents(source) == expected
    for num_records in (sum(len(episode.records) for episode in expected.episodes), 0):
        assert (await Importer(bus=target, subjects=TARGET).run(source)).num_records == num_records
        assert await world.contents(StreamSource(target, TARGET)) == expected
    folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    archived = [ended.episode async for ended in ArchiveSource(folder).trajectories()]
    assert archived == [episode.episode for episode in expected.episodes[1:]]
    assert [(gap.first_seq, gap.last_seq) for gap in folder.gaps()] == [(1, 1)]


async def test_an_import_that_was_broken_off_goes_on(tmp_path: Path) -> None:
    bus, target = await filled(), new_bus(TARGET)
    source = StreamSource(bus, SUBJECTS)
    expected = await world.contents(source)
    append, left = target.append_bytes, 0

    async def breaking(*arguments: Any, **options: Any) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise BusUnavailable("cut")
        return await append(*arguments, **options)

    target.append_bytes = breaking  # type: ignore[method-assign]
    for _ in range(100):
        left = 25
        with contextlib.suppress(BusUnavailable):
            await Importer(bus=target, subjects=TARGET).run(source)
            break
    assert left >= 0
    assert await world.contents(StreamSource(target, TARGET)) == expected


async def test_other_content_under_the_same_identity_is_refused_by_name() -> None:
    bus, target = await filled(2), new_bus(TARGET)
    other = msgspec.structs.replace(world.task(1, run=SUBJECTS.run), instruction="something else")
    await chain.admit(target, TARGET, other)
    with pytest.raises(ImportConflict, match=f"record task of episode {other.episode} differs"):
        await Importer(bus=target, subjects=TARGET).run(StreamSource(bus, SUBJECTS))
    given = world.judgement((await world.contents(StreamSource(bus, SUBJECTS))).episodes[0].trajectory)
    target = new_bus(TARGET)
    await world.judge(target, TARGET, msgspec.structs.replace(given, judge=world.BROWSER))
    with pytest.raises(ImportConflict, match=f"judgement of {given.episode} under environment differs"):
        await Importer(bus=target, subjects=TARGET).run(StreamSource(bus, SUBJECTS))


async def test_without_judgements_everything_else_is_imported() -> None:
    bus, target = await filled(), new_bus(TARGET)
    await Importer(bus=target, subjects=TARGET, judgements=False).run(StreamSource(bus, SUBJECTS))
    assert await target.last_seq(TARGET.judged) == 0
    assert await target.last_seq(TARGET.trajectories) == 8


@given(st.binary(min_size=1, max_size=64), st.text(max_size=20))
def test_cutting_a_screenshot_out_and_putting_it_back_gives_the_same_bytes(screenshot: bytes, title: str) -> None:
    of = world.task(1, run=SUBJECTS.run)
    seen = msgspec.structs.replace(builders.observation(of, data=screenshot), title=title)
    record = StoredRecord("1.obs.0", 1.0, encode(seen))
    rest, taken = cut(record)
    assert taken is not None
    assert taken.data == screenshot
    assert len(rest.data) == len(record.data) - len(screenshot)
    assert join(rest, screenshot) == record
    with pytest.raises(ArchiveDamaged):
        join(rest, screenshot[:-1] + bytes([screenshot[-1] ^ 1]))


@given(st.binary(max_size=64))
def test_a_message_of_another_version_stays_whole(data: bytes) -> None:
    newer = StoredRecord("1.obs.0", 1.0, msgspec.msgpack.encode({"type": "obs/99", "screenshot": {"data": data}}))
    rest, screenshot = cut(newer)
    assert screenshot is None
    assert join(rest, b"") == newer


async def test_once_says_that_another_archiver_of_the_run_is_active(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = await filled(1)
    monkeypatch.setattr(archiver, "_LEASE_PATIENCE_S", 0.05)
    held, over = anyio.Event(), anyio.Event()

    async def other_archiver() -> None:
        async with bus.lease("archiver", ttl_s=5.0):
            held.set()
            await over.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(other_archiver)
        await held.wait()
        with pytest.raises(ArchiveError, match="another archiver of this run is active"):
            await world.archive(bus, SUBJECTS, tmp_path / "archive")
        over.set()
    assert (await world.archive(bus, SUBJECTS, tmp_path / "archive")).trajectories.position == 1


async def test_a_stall_of_ones_own_is_no_other_archiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus, loop = await filled(1), asyncio.get_running_loop()
    lease, before = bus.lease, loop.time

    @asynccontextmanager
    async def behind_a_stall(name: str, *, ttl_s: float) -> AsyncIterator[Lease]:
        monkeypatch.setattr(loop, "time", lambda: before() + 4 * archiver._LEASE_PATIENCE_S)
        await anyio.lowlevel.checkpoint()
        async with lease(name, ttl_s=ttl_s) as held:
            yield held

    monkeypatch.setattr(bus, "lease", behind_a_stall)
    assert (await world.archive(bus, SUBJECTS, tmp_path / "archive")).trajectories.position == 1


@pytest.mark.parametrize(("parts", "lost"), [("trajectories", "5 to 8"), ("judgements", "1 to 4")])
async def test_a_part_that_is_gone_is_found(tmp_path: Path, parts: str, lost: str) -> None:
    folder = await world.archive(await filled(12), SUBJECTS, tmp_path / "archive")
    first, last = lost.split(" to ")
    part = folder.path / parts / f"{int(first):012d}-{int(last):012d}.parquet"
    part.unlink()
    part.with_name(part.name + ".sha256").unlink()
    assert verify(folder).damaged == [f"{folder.path / parts}: sequences {lost} in no part and in no gap"]


async def test_a_stream_is_read_to_an_end_that_ages_out_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_source, "_PAGE", 1)
    bus = await filled(3)
    found = list[int]()
    with anyio.fail_after(HANGS_S):
        async for record in records_to_the_end(bus, SUBJECTS.trajectories, SUBJECTS.everything("trajectory")):
            found.append(record.seq)
            await bus.purge(SUBJECTS.trajectories, ">")
    assert found == [1]


async def test_what_ages_out_behind_the_last_record_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = await filled(3)
    tail = bus.tail

    @asynccontextmanager
    async def aging(stream: str, subject_filter: str, **where: Any) -> AsyncIterator[AsyncIterator[Record]]:
        async with tail(stream, subject_filter, **where) as records:

            async def first_alone() -> AsyncIterator[Record]:
                yield await anext(records)
                await bus.purge(stream, subject_filter)
                async for record in records:
                    yield record

            yield first_alone()

    monkeypatch.setattr(bus, "tail", aging)
    with anyio.fail_after(HANGS_S):
        folder = await world.archive(bus, SUBJECTS, tmp_path / "archive")
    assert [(part.first_seq, part.last_seq) for part in folder.trajectories.parts()] == [(1, 1)]
    gaps = {gap.stream: (gap.first_seq, gap.last_seq) for gap in folder.gaps()}
    assert gaps == {SUBJECTS.trajectories: (2, 3), SUBJECTS.judged: (2, 4)}


async def test_a_stream_that_begins_again_under_the_archiver_stops_it(tmp_path: Path) -> None:
    bus, waiting = await filled(4), anyio.Event()
    folder = ArchiveFolder(tmp_path / "archive")
    again = [record async for record in records_to_the_end(bus, SUBJECTS.trajectories, SUBJECTS.everything("trajectory"))]

    class Beginning(MemoryBus):
        @asynccontextmanager
        async def tail(self, stream: str, subject_filter: str, **_: object) -> AsyncIterator[AsyncIterator[Record]]:
            async def records() -> AsyncIterator[Record]:
                for record in (*again, *again) if stream == SUBJECTS.trajectories else ():
                    yield record
                await waiting.wait()

            yield records()

    beginning = Beginning(SUBJECTS)
    beginning.__dict__ = bus.__dict__
    with folder.writing(SUBJECTS.run, ""):
        with pytest.raises(ExceptionGroup) as caught:
            await world.archiver(beginning, SUBJECTS, folder).run()
        assert caught.group_contains(ArchiveError, match="began again while it was archived", depth=None)
    assert [(part.first_seq, part.last_seq) for part in folder.trajectories.parts()] == [(1, 4)]
    assert verify(folder).damaged == []


def test_a_screenshot_that_a_killed_writer_left_is_forced_to_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = ScreenshotStore(tmp_path).put(world.shot(1))
    forced: list[Path] = []
    monkeypatch.setattr(screenshots, "sync_all", forced.extend)
    store = ScreenshotStore(tmp_path)
    store.put(world.shot(1))
    store.sync()
    assert tmp_path / screenshot_path(name) in forced
    assert store.num_bytes == 0
