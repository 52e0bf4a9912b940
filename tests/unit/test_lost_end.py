"""A server that lost power gives the sequences of what it has lost to other records: on the in-memory bus."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec import structs
from structlog.testing import capture_logs

from agents.following import Following
from bus.backlog import backlog
from bus.consumer.position import DurablePlace
from bus.consumer.start import BEGINNING
from bus.lineage import Lineage, all_announced, catch_up
from bus.memory import MemoryBus
from bus.ports import Record
from bus.retry import Backoff
from bus.served import ServedVersions
from ops.simulation.training import Counters
from schemas.errors import PositionTaken, TrainerError
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import FeederMemory, Heartbeat, Outcome, Position, Role, ServedVersion, ServingState, Trajectory
from tests.builders import RUBRIC, checkpoint, judgement
from tests.deadlines import HANGS_S
from tests.support.training.trainer_world import SUBJECTS, judge, train_task
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.intake import ReadingPlace, open_intake, sized
from trainer.episodes.passes import Consumed
from trainer.feeding.feeder_records import FeederRecords
from trainer.scores import is_success
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import TrainerState, require_no_versions, write_checkpoint

pytestmark = pytest.mark.anyio


def ended(index: int) -> Trajectory:
    return Trajectory(task=train_task(index), attempt=1, outcome=Outcome.DONE)


def lose_end(bus: MemoryBus, name: str = SUBJECTS.judged, *, behind: int) -> None:
    stream = bus._streams[name]
    stream.records = {seq: record for seq, record in stream.records.items() if seq <= behind}
    stream.last_seq = behind


async def _no_steps(_: Trajectory) -> EpisodeSteps:
    return EpisodeSteps()


@pytest.mark.parametrize(
    ("behind", "judged_again", "expected"),
    [
        (8, [], [20]),
        (6, [], [20]),
        (6, [6, 7], [20]),
        (6, [7, 6, 9], [9, 20]),
        (3, [5, 4, 11, 3, 12, 6, 7], [11, 12, 20]),
        (0, [0, 1, 2], [20]),
    ],
)
async def test_what_was_consumed_is_never_consumed_again_nor_anything_left_out(
    behind: int, judged_again: list[int], expected: list[int]
) -> None:
    bus = MemoryBus(SUBJECTS)
    for index in range(8):
        await judge(bus, ended(index))
    consumed = tuple(Consumed(index + 1, ended(index).episode) for index in range(8))
    lose_end(bus, behind=behind)
    for index in (*judged_again, 20):
        await judge(bus, ended(index))
    with capture_logs() as entries, anyio.fail_after(HANGS_S):
        async with open_intake(
            bus, SUBJECTS, _no_steps, is_success, rubric=RUBRIC, place=ReadingPlace(8, consumed), ahead=4
        ) as intake:
            batch = await intake.batch(sized(len(expected)), lambda _: None)
    assert [item.judgement.trajectory.task.index for item in batch] == expected
    is_as_it_was = behind == 8 or judged_again == [6, 7]
    assert ("stream_lost_its_end" in [entry["event"] for entry in entries]) is not is_as_it_was


async def test_a_trainer_goes_on_behind_a_judgement_that_no_reader_takes_any_more() -> None:
    bus = MemoryBus(SUBJECTS)
    last = judgement(ended(0))
    await bus.append_bytes(SUBJECTS.judged, SUBJECTS.judgement(last.split, last.rubric, last.episode), b"\xc1 newer")
    place = ReadingPlace(1, (Consumed(1, last.episode),))
    with capture_logs() as entries, anyio.fail_after(HANGS_S):
        async with open_intake(bus, SUBJECTS, _no_steps, is_success, rubric=RUBRIC, place=place, ahead=4) as intake:
            await judge(bus, ended(1))
            batch = await intake.batch(sized(1), lambda _: None)
    assert [item.judgement.trajectory.task.index for item in batch] == [1]
    assert "stream_lost_its_end" not in [entry["event"] for entry in entries]


async def test_where_nothing_is_known_of_what_was_consumed_it_goes_on_at_the_end() -> None:
    bus = MemoryBus(SUBJECTS)
    for index in range(3):
        await judge(bus, ended(index))
    with anyio.fail_after(HANGS_S):
        async with open_intake(bus, SUBJECTS, _no_steps, is_success, rubric=RUBRIC, place=ReadingPlace(8), ahead=4) as intake:
            await judge(bus, ended(9))
            batch = await intake.batch(sized(1), lambda _: None)
    assert [item.judgement.trajectory.task.index for item in batch] == [9]


def test_a_trainer_whose_announcements_are_lost_begins_nothing_anew(tmp_path: Path) -> None:
    require_no_versions(tmp_path, "r")
    for version in (3, 12):
        (tmp_path / f"v{version:06d}-0a1b2c3d").mkdir()
    with pytest.raises(TrainerError, match="holds versions up to 12 and CHECKPOINTS of run r announces none"):
        require_no_versions(tmp_path, "r")


class World:
    """A trainer that lives on, and the two kinds of those who follow its versions: by pages, and by a tail."""

    def __init__(self, num_announced: int) -> None:
        self.bus = MemoryBus(SUBJECTS)
        self.trainer = Announcements(self.bus, SUBJECTS)
        self.paging, self.tailing = Lineage(), Lineage()
        self._after_s = 0.0
        self.num_announced = num_announced

    async def begin(self) -> None:
        await self.announce(*range(self.num_announced))

    async def announce(self, *versions: int) -> None:
        for version in versions:
            await self.trainer.announce(checkpoint(version))
        await self.follow()

    async def follow(self) -> None:
        await catch_up(self.paging, self.bus, SUBJECTS)
        async for record in backlog(self.bus, SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")):
            if record.time_s >= self._after_s:  # as a tail that goes on where the stream has lost its end
                self.tailing.takes(record)
        self._after_s = self.tailing.stored_at

    def lose(self, *, behind: int) -> None:
        lose_end(self.bus, SUBJECTS.checkpoints, behind=behind)

    async def known(self) -> list[list[int]]:
        lineages = (self.paging, self.tailing, await catch_up(Lineage(), self.bus, SUBJECTS))
        return [[int(version) for version in lineage.known] for lineage in lineages]


@pytest.mark.parametrize("behind", [0, 1, 2])
async def test_versions_go_on_behind_those_whose_announcement_was_lost(behind: int) -> None:
    world = World(num_announced=3)
    await world.begin()
    world.lose(behind=behind)
    with capture_logs() as entries:
        await world.announce(3)
    again = [entry["version"] for entry in entries if entry["event"] == "version_announced_again"]
    assert again == list(range(behind, 3))
    await world.announce(4, 5)
    assert await world.known() == [list(range(6))] * 3


async def test_what_is_announced_is_announced_once() -> None:
    world = World(num_announced=4)
    await world.begin()
    assert await world.bus.last_seq(SUBJECTS.checkpoints) == 4


async def test_what_another_trainer_makes_of_the_lost_versions_is_taken_by_everybody() -> None:
    world = World(num_announced=4)
    await world.begin()
    world.lose(behind=2)
    world.trainer = Announcements(world.bus, SUBJECTS)
    again = [checkpoint(version, again=1.0) for version in (2, 3)]
    for each in again:
        await world.trainer.announce(each)
    await world.follow()
    for lineage in (world.paging, world.tailing):
        assert [lineage.known[each.version] for each in again] == again
    await world.announce(4)
    assert await world.known() == [list(range(5))] * 3


async def test_a_trainer_that_resumed_announces_also_what_was_announced_before_it(tmp_path: Path) -> None:
    world = World(num_announced=0)
    base = await world.trainer.announce_base(tmp_path)
    state = TrainerState(version=1, num_trajectories=2, num_updates=1)
    folder, files = write_checkpoint(tmp_path / "versions", base=None, engine=Counters(), state=state)
    first = structs.replace(checkpoint(1), uri=folder.as_uri(), files=files)
    await world.trainer.announce(first)
    resumed = Announcements(world.bus, SUBJECTS)
    assert await resumed.begin(tmp_path, tmp_path / "versions") == first
    world.lose(behind=0)
    await resumed.announce(structs.replace(checkpoint(2), uri=folder.with_name("second").as_uri()))
    assert [each.version for each in await all_announced(world.bus, SUBJECTS)] == [0, 1, 2]
    assert (await all_announced(world.bus, SUBJECTS))[:2] == [base, first]


async def test_a_trainer_goes_on_from_what_the_server_still_has(tmp_path: Path) -> None:
    """Though it knew of more: what is lost is nobody's newest version."""
    world = World(num_announced=3)
    await world.begin()
    world.lose(behind=2)
    newest = await world.trainer.newest()
    assert newest is not None
    assert newest.version == 1


def test_a_policy_follows_what_is_announced_at_a_lost_sequence() -> None:
    following = Following(PolicyVersion(0))
    following.announced(3, checkpoint(2), 0.0)
    following.loaded(PolicyVersion(2))
    following.announced(2, checkpoint(3), 1.0)
    assert following.wanted == checkpoint(3)
    following.loaded(PolicyVersion(3))
    following.announced(2, checkpoint(4), 2.0)
    assert following.wanted == checkpoint(4)


def test_the_later_word_of_a_policy_counts_whatever_its_sequence() -> None:
    worker = WorkerId("p")

    def said(version: int, at: float) -> ServedVersion:
        return ServedVersion(worker=worker, state=ServingState.SERVING, version=PolicyVersion(version), at=at)

    served = ServedVersions()
    served.apply(Heartbeat(role=Role.POLICY, worker=worker, state="working", at=1.0), 1.0)
    served.apply(said(7, at=1.0), 1.0, 116)
    served.apply(said(8, at=9.0), 9.0, 101)
    assert served.counted(9.0) == 8
    served.apply(said(7, at=1.0), 9.0, 100)
    assert served.counted(9.0) == 8, "a copy of an older word"
    served.apply(said(9, at=8.0), 9.0, 102)
    assert served.counted(9.0) == 9, "the worker's clock was put back"


def synced(bus: MemoryBus, name: str) -> Callable[[], None]:
    """What the server's disk holds of a stream now; when called, the power goes."""
    stream = bus._streams[name]
    records, last_seq = dict(stream.records), stream.last_seq

    def lose() -> None:
        stream.records, stream.last_seq = dict(records), last_seq

    return lose


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.trying.LOOKED_FOR", Backoff(0.0, 0.0))


async def reader(bus: MemoryBus) -> DurablePlace:
    place = DurablePlace(bus, SUBJECTS, "mine")
    await place.claim((SUBJECTS.trajectories,), BEGINNING)
    return place


async def passed(place: DurablePlace, *seqs: int) -> None:
    for seq in seqs:
        place.passed(Record(SUBJECTS.trajectories, "", seq, train_task(seq), 1.0))
        await place.write()


async def place_of(bus: MemoryBus) -> int:
    record = await bus.last(SUBJECTS.positions, SUBJECTS.position("mine"))
    assert record is not None
    assert isinstance(record.message, Position)
    return record.message.sequences[SUBJECTS.trajectories]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("left", ["nothing", "the reader before", "two readers before", "an earlier place"])
async def test_a_reader_stores_its_place_behind_whatever_is_left(left: str) -> None:
    bus = MemoryBus(SUBJECTS)
    if left != "nothing":
        await passed(await reader(bus), 9)
    lose = synced(bus, SUBJECTS.positions)
    if left == "two readers before":
        await reader(bus)
    place = await reader(bus)
    if left == "an earlier place":
        lose = synced(bus, SUBJECTS.positions)
    await passed(place, 1, 2)
    lose()
    await passed(place, 3)
    assert await place_of(bus) == 3
    await passed(place, 4)
    assert await place_of(bus) == 4


@pytest.mark.usefixtures("impatient")
async def test_a_reader_does_not_write_over_one_that_came_after_the_loss() -> None:
    bus = MemoryBus(SUBJECTS)
    before = await reader(bus)
    lose = synced(bus, SUBJECTS.positions)
    place = await reader(bus)
    await passed(place, 1)
    lose()
    after = await reader(bus)
    for earlier in (before, place):
        with pytest.raises(PositionTaken):
            await passed(earlier, 2)
    await passed(after, 3)
    assert await place_of(bus) == 3


def memory(records: FeederRecords, index: int) -> FeederMemory:
    return FeederMemory(holder=records.holder, sequences={SUBJECTS.judged: index})


@pytest.mark.parametrize("led_before", [False, True])
async def test_a_feeder_writes_behind_whatever_is_left(led_before: bool) -> None:
    bus = MemoryBus(SUBJECTS)
    if led_before:
        await FeederRecords(bus, SUBJECTS).claim()
    lose = synced(bus, SUBJECTS.feeding)
    records = FeederRecords(bus, SUBJECTS)
    await records.claim()
    assert await records.write(memory(records, 1))
    lose()
    with anyio.fail_after(HANGS_S):
        assert await records.write(memory(records, 2))
        assert await records.write(memory(records, 3))
    lose()
    assert await FeederRecords(bus, SUBJECTS).claim() != memory(records, 3)
    with anyio.fail_after(HANGS_S):
        assert not await records.write(memory(records, 4)), "another one leads"
