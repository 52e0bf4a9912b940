"""What a lagging replica shows is old, and what it does not show may be there: nobody concludes anything from it."""

from pathlib import Path

import anyio
import pytest
from msgspec import structs

from agents.weights import AnnouncedWeights
from browser_workers.play import Play
from bus import chain
from bus.background import background
from bus.chain import EpisodeChain
from bus.chain_state import is_end
from bus.consumer.position import DurablePlace
from bus.consumer.source import Source
from bus.consumer.start import BEGINNING
from bus.context import WorkerContext
from bus.evidence import Evidence
from bus.lineage import all_announced
from bus.memory import MemoryBus
from bus.ports import Expect, Record
from bus.presence import Status
from bus.retry import Backoff
from bus.trying import LOOKS
from bus.weight_chunks import stored_files
from judges.episode import JudgedEpisode
from judges.function_judge import FunctionJudge
from judges.worker import JudgeWorker
from ops.archive.stream_source import read_episode
from ops.simulation.training import Counters
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.errors import BusUnavailable, ChainConflict, RecordGone
from schemas.ids import PolicyVersion, WorkerId
from schemas.judge_config import JudgeConfig
from schemas.messages import (
    AnyMessage,
    Checkpoint,
    FileHash,
    Judgement,
    Outcome,
    Position,
    RecordRef,
    Role,
    Task,
    Trajectory,
    Verdict,
)
from tests.builders import RUN, WORKER, checkpoint, judgement, observation, step_request, task, trajectory
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.lagging import LaggingBus
from tests.support.bus.local_weights import local_weights
from tests.support.bus.played import play
from tests.support.bus.weight_world import CONFIG, checkpoint_of, version_files, write
from tests.support.judging.webarena import recorded, visit
from trainer.feeding.admission import Admitter
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import TrainerState, write_checkpoint
from trainer.versions.weight_publishing import WeightPublisher

pytestmark = [pytest.mark.anyio]
SECOND = WorkerId("worker-2")


async def admitted(bus: MemoryBus) -> Task:
    of = task()
    await chain.admit(bus, SUBJECTS, of)
    return of


async def taken(bus: MemoryBus, of: Task, worker: WorkerId = WORKER) -> EpisodeChain:
    owned = await EpisodeChain.take(bus, SUBJECTS, of, worker)
    assert isinstance(owned, EpisodeChain)
    return owned


def play_of(bus: MemoryBus, owned: EpisodeChain) -> Play:
    return Play(bus=bus, subjects=SUBJECTS, chain=owned, worker=WORKER, resend_s=1.0, max_attempts=2)


async def test_an_end_that_is_not_shown_yet_is_found() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    owned = await taken(bus, of)
    bus.lag(2)
    ended = trajectory(of)
    await owned.finish(ended)
    assert await EpisodeChain.take(bus, SUBJECTS, of, SECOND) == ended


async def test_a_dead_workers_episode_is_taken_over_behind_what_is_not_shown_yet() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    fenced = await taken(bus, of)
    bus.lag(2)
    await fenced.observe(observation(of))
    owned = await taken(bus, of, SECOND)
    assert (owned.attempt, bus.lags) == (2, False)
    with pytest.raises(ChainConflict):
        await fenced.finish(trajectory(of))


async def test_an_attempt_that_somebody_has_just_begun_is_left_to_him() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    bus.lag(2)
    await taken(bus, of)
    assert bus.lags
    with pytest.raises(ChainConflict):
        await EpisodeChain.take(bus, SUBJECTS, of, SECOND)


async def test_an_owner_is_not_frightened_by_what_is_not_shown_yet() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    owned = await taken(bus, of)
    bus.lag(3)
    await owned.observe(observation(of))
    assert await owned.pending_answer() is None
    assert not bus.lags


async def test_an_owner_notices_that_a_later_attempt_was_answered() -> None:
    bus = MemoryBus(SUBJECTS)
    of = await admitted(bus)
    fenced = await taken(bus, of)
    await fenced.observe(observation(of))
    owned = await taken(bus, of, SECOND)
    await chain.answer(bus, SUBJECTS, await owned.observe(observation(of, attempt=2)), step_request(of, attempt=2))
    with pytest.raises(ChainConflict):
        await fenced.pending_answer()


async def test_a_late_answer_that_is_not_shown_yet_does_not_cost_the_episode() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    owned = await taken(bus, of)
    play = play_of(bus, owned)
    seq = await owned.observe(observation(of))
    bus.lag(2)
    await chain.answer(bus, SUBJECTS, seq, step_request(of))
    ended = await play.end(play._episode.timed_out())
    assert (ended.num_observations, ended.num_steps, bus.lags) == (1, 1, False)
    record = await bus.last(SUBJECTS.episodes(0), SUBJECTS.chain(of.episode))
    assert record is not None
    assert record.message == ended


async def test_a_record_that_is_named_is_looked_for_again() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    owned = await taken(bus, of)
    bus.lag(2)
    await owned.observe(observation(of))
    found = await chain.read(bus, SUBJECTS, RecordRef(of.episode, attempt=1, kind="obs", step=0))
    assert found is not None
    assert found.message == observation(of)


async def test_cancelling_counts_what_is_not_shown_yet() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    owned = await taken(bus, of)
    bus.lag(3)
    await owned.observe(observation(of))
    began = anyio.current_time()
    ended = await chain.cancel(bus, SUBJECTS, of, Outcome.CANCELLED, "the batch is complete", 5.0)
    assert isinstance(ended, Trajectory)
    assert (ended.num_observations, bus.lags) == (1, False)
    assert anyio.current_time() - began > 0.1, "a lagging replica is not asked without a pause"


async def test_weights_that_were_heard_of_are_loaded_though_the_newest_is_not_shown(tmp_path: Path) -> None:
    bus = LaggingBus(SUBJECTS)
    loaded = list[int]()
    done = anyio.Event()
    (tmp_path / "weights").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    async def load(_: Path, version: PolicyVersion) -> None:
        loaded.append(version)
        done.set()

    weights = AnnouncedWeights(bus, SUBJECTS, load, PolicyVersion(0), local_weights(bus, SUBJECTS))
    announced = Checkpoint(
        run=RUN,
        version=PolicyVersion(1),
        uri=tmp_path.as_uri(),
        files=(FileHash(path="weights", sha256=empty, num_bytes=0),),
        parent=None,
        trainer_step=0,
        judged_seq=0,
    )
    bus.lag(1)
    async with anyio.create_task_group() as group:
        group.start_soon(weights.follow)
        await bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(1)), announced)
        with anyio.fail_after(HANGS_S):
            await done.wait()
        group.cancel_scope.cancel()
    assert (loaded, bus.lags) == ([1], False)


async def test_a_trainer_goes_on_from_the_version_that_is_announced(tmp_path: Path) -> None:
    """From an older one it would make the announced one again, in the folder from which policies load."""
    bus = LaggingBus(SUBJECTS)
    announcements = Announcements(bus, SUBJECTS)
    base = await announcements.announce_base(tmp_path)
    bus.lag(9)
    state = TrainerState(version=1, num_trajectories=2, num_updates=1)
    folder, files = write_checkpoint(tmp_path / "versions", base=None, engine=Counters(), state=state)
    first = structs.replace(checkpoint(1), uri=folder.as_uri(), files=files)
    await announcements.announce(first)
    assert await announcements.begin(tmp_path, tmp_path / "none") == first
    bus.show_nothing(9)
    assert await announcements.begin(tmp_path, tmp_path / "none") == first
    assert base.version == 0


async def test_the_weights_of_a_version_that_is_not_shown_yet_stay_stored(tmp_path: Path) -> None:
    bus = LaggingBus(SUBJECTS, CONFIG)
    announcements = Announcements(bus, SUBJECTS, WeightPublisher(bus, SUBJECTS, CONFIG))
    bus.lag(9)
    for version in (1, 2):
        folder = write(tmp_path / str(version), version_files(version))
        await announcements.announce(checkpoint_of(folder, version, version_files(version)))
    bus.lag(0)
    announced = await all_announced(bus, SUBJECTS)
    files = {file for checkpoint in announced for file in checkpoint.policy_files}
    assert [checkpoint.version for checkpoint in announced] == [1, 2]
    assert await stored_files(bus, SUBJECTS) == {file.sha256 for file in files if file.num_bytes}


class LosingAnAnswer(LaggingBus):
    """Stores, and does not say so, once."""

    loses = False

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        seq = await super().append(stream, subject, message, expect=expect)
        if self.loses:
            self.loses = False
            raise BusUnavailable("the server was killed")
        return seq


async def test_a_reader_does_not_take_its_own_place_for_another_readers() -> None:
    """The lagging replica still shows the reader before it."""
    bus = LosingAnAnswer(SUBJECTS)
    await DurablePlace(bus, SUBJECTS, "mine").claim((SUBJECTS.judged,), BEGINNING)
    place = DurablePlace(bus, SUBJECTS, "mine")
    bus.lag(2)
    await place.claim((SUBJECTS.judged,), BEGINNING)
    place.passed(Record(SUBJECTS.judged, "", 5, task()))
    bus.loses = True
    with pytest.raises(BusUnavailable):
        await place.write()
    await place.write()
    record = await bus.last(SUBJECTS.positions, SUBJECTS.position("mine"))
    assert record is not None
    assert isinstance(record.message, Position)
    assert (record.message.sequences[SUBJECTS.judged], bus.lags) == (5, False)


async def evidence_of(bus: LaggingBus, *, num_hidden: int) -> tuple[Evidence, Trajectory]:
    """Of an episode of two steps, none of which is shown in the first `num_hidden` reads."""
    ended = await play(bus, task(), num_steps=2, in_prompt=lambda step: tuple(range(step + 1)))
    bus.show_nothing(num_hidden)
    return Evidence(bus, SUBJECTS), ended


@pytest.mark.parametrize("num_hidden", [1, 2, 4])
async def test_evidence_that_is_not_shown_yet_has_not_aged_out(num_hidden: int) -> None:
    bus = LaggingBus(SUBJECTS)
    evidence, ended = await evidence_of(bus, num_hidden=num_hidden)
    assert [seen.step for seen in await evidence.observations(ended)] == [0, 1]
    assert not bus.lags
    bus.show_nothing(num_hidden)
    steps = await evidence.steps(ended)
    assert ([step.step for step in steps], bus.lags) == ([0, 1], False)
    for message in (ended, judgement(ended), steps[1]):
        bus.show_nothing(num_hidden)
        screenshots = [screenshot.data for screenshot in await evidence.screenshots(message)]
        assert (screenshots, bus.lags) == ([b"screenshot 0", b"screenshot 1"], False)


async def test_traffic_that_is_not_shown_yet_has_not_aged_out() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    owned = await taken(bus, of)
    record = recorded(of, [visit("/")])
    bus.lag(2)
    await owned.record(record)
    ended = structs.replace(trajectory(of), network=record.summary)
    assert await Evidence(bus, SUBJECTS).network(ended) == record
    assert not bus.lags


async def test_evidence_that_cannot_be_seen_is_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.trying.LOOKED_FOR", Backoff(0.0, 0.0))
    bus = LaggingBus(SUBJECTS)
    evidence, ended = await evidence_of(bus, num_hidden=2 + LOOKS)
    with pytest.raises(BusUnavailable, match="cannot be seen yet"):
        await evidence.observations(ended)
    assert len(await evidence.observations(ended)) == 2


async def test_evidence_that_no_reader_takes_is_not_waited_for() -> None:
    bus = MemoryBus(SUBJECTS)
    ended = await play(bus, task(), num_steps=1)
    await bus.append_bytes(SUBJECTS.episodes(0), SUBJECTS.chain_record(ended.episode, 1, "obs", 1), b"\xc1")
    with pytest.raises(RecordGone, match="holds 1 of the 2 records"):
        await Evidence(bus, SUBJECTS).observations(structs.replace(ended, num_observations=2))


async def test_a_judge_rules_by_what_is_not_shown_yet() -> None:
    async def looks(episode: JudgedEpisode) -> bool:
        return len(await episode.observations()) == len(await episode.steps()) == 2

    config = Config(bus_config=BusConfig(run=RUN), judge_config=JudgeConfig(judge="m:looks_v1"))
    bus = LaggingBus(SUBJECTS, config.bus_config, ("looks_v1",))
    await evidence_of(bus, num_hidden=3)
    context = WorkerContext(bus, SUBJECTS, Status(Role.JUDGE, WORKER))
    worker = JudgeWorker(context, config, FunctionJudge("looks_v1", looks))
    async with background(worker.run), bus.tail(SUBJECTS.judged, f"{RUN}.judged.>") as records:
        with anyio.fail_after(HANGS_S):
            record = await anext(records)
    assert isinstance(record.message, Judgement)
    assert (record.message.verdict, record.message.error, bus.lags) == (Verdict.SUCCESS, "", False)


async def test_a_named_record_is_given_up_when_the_leader_lacks_it_and_not_before() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    owned = await taken(bus, of)
    bus.lag(LOOKS)
    await owned.observe(observation(of))
    found = await chain.read(bus, SUBJECTS, RecordRef(of.episode, attempt=1, kind="obs", step=0))
    assert (found is not None, bus.lags) == (True, False)
    bus.lag(LOOKS)
    assert await chain.read(bus, SUBJECTS, RecordRef(of.episode, attempt=1, kind="obs", step=1)) is None
    assert bus.lags, "what nobody has is not looked for again"


async def test_an_end_of_another_task_is_none_though_the_task_is_not_shown_yet() -> None:
    bus = LaggingBus(SUBJECTS)
    of = await admitted(bus)
    bus.show_nothing(1)
    assert not await is_end(bus, SUBJECTS, trajectory(structs.replace(of, instruction="another")))
    assert not bus.lags


async def test_an_archived_chain_is_whole_though_its_end_is_not_shown_yet() -> None:
    bus = LaggingBus(SUBJECTS)
    ended = await play(bus, task())
    record = await bus.last(SUBJECTS.trajectories, SUBJECTS.trajectory(ended.task.split, ended.episode))
    assert record is not None
    bus.show_nothing(2)
    assert (await read_episode(bus, SUBJECTS, record)).is_complete
    assert not bus.lags


async def test_a_reader_that_ends_now_reads_what_is_not_shown_yet() -> None:
    bus = LaggingBus(SUBJECTS)
    await play(bus, task())
    bus.show_nothing(2)
    source = await Source(SUBJECTS.trajectories, SUBJECTS.everything("trajectory")).until_now(bus)
    assert (source.end_seq, bus.lags) == (1, False)


async def test_a_reader_whose_record_is_not_shown_yet_does_not_take_it_for_removed() -> None:
    """Another record has its sequence: what was stored since counts."""
    bus = LaggingBus(SUBJECTS)
    place = DurablePlace(bus, SUBJECTS, "mine")
    await place.claim((SUBJECTS.trajectories,), BEGINNING)
    await play(bus, task())
    place.passed(Record(SUBJECTS.trajectories, "", 1, task(), time_s=1.0))
    await place.write()
    anew = DurablePlace(bus, SUBJECTS, "mine")
    bus.show_nothing(2)
    starts = await anew.claim((SUBJECTS.trajectories,), BEGINNING)
    assert (starts[SUBJECTS.trajectories].since_s, bus.lags) == (1.0, False)


async def test_a_repair_publishes_and_queues_what_is_not_shown_yet() -> None:
    bus = LaggingBus(SUBJECTS)
    unpublished, unqueued = task("t1"), task("t2")
    for of in (unpublished, unqueued):
        await chain.admit(bus, SUBJECTS, of)
    await chain.cancel(bus, SUBJECTS, unpublished, Outcome.CANCELLED, "nobody published it", 5.0)
    bus.show_nothing(2)
    for of in (unpublished, unqueued):
        assert await Admitter(bus, SUBJECTS).repair(of.episode, of.split)
    assert list(await bus.subjects(SUBJECTS.trajectories, SUBJECTS.everything("trajectory"))) == [
        SUBJECTS.trajectory(unpublished.split, unpublished.episode)
    ]
    assert list(await bus.subjects(SUBJECTS.tasks, SUBJECTS.everything("task"))) == [
        SUBJECTS.task(unqueued.split, unqueued.episode)
    ]
