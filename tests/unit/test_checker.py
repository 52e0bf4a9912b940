"""The checker finds every kind of damage: each test breaks one promise in otherwise sound streams."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import msgspec
import pytest

from bus import chain
from bus.memory import MemoryBus
from bus.ports import QueueDepth, StoredBytes, WorkQueue
from bus.subjects import Subjects
from bus.topology import task_queue, trajectory_queue
from ops.audit.acknowledgements import AcknowledgementWatch
from ops.audit.audit import audit
from ops.audit.ledger import Kind, Ledger, Link, read_ledger
from ops.audit.promises import Findings
from ops.audit.waits import Waiting, metrics, waits
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.ids import EpisodeId, PolicyVersion, WorkerId
from schemas.messages import Checkpoint, Judgement, Outcome, Split, Task, Trajectory, Verdict
from tests import builders

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(builders.RUN)
CONFIG = BusConfig(run=builders.RUN, rubrics=("r1",))
BATCH = 2


class World:
    """A sound run of four episodes and two versions on the in-memory bus, and the means to break it."""

    def __init__(self) -> None:
        self.bus = MemoryBus(SUBJECTS, rubrics=("r1",))
        self.config = Config(
            bus_config=CONFIG,
            env_config=EnvConfig(train_tasks_rollout_size=BATCH),
        )
        self.judged_seqs: list[int] = []

    async def play(self, name: str, *, attempts: int = 1) -> Trajectory:
        task = builders.task(name)
        await chain.admit(self.bus, SUBJECTS, task)
        owner = await self._take(task)
        for _ in range(1, attempts):
            owner = await self._take(task)
        done = builders.trajectory(task, num_observations=1, attempt=attempts)
        await owner.finish(done)
        return done

    async def _take(self, task: Task) -> chain.EpisodeChain:
        owner = await chain.EpisodeChain.take(self.bus, SUBJECTS, task, WorkerId("browser-1"))
        assert isinstance(owner, chain.EpisodeChain)
        await owner.observe(builders.observation(task, attempt=owner.attempt))
        return owner

    async def publish(self, done: Trajectory) -> None:
        await chain.publish_trajectory(self.bus, SUBJECTS, done)

    async def judge(self, done: Trajectory, *, rubric: str = "r1", verdict: Verdict = Verdict.SUCCESS) -> None:
        judgement = Judgement(
            episode=done.episode,
            group=done.task.group,
            split=done.task.split,
            rubric=rubric,
            verdict=verdict,
            reward=1.0,
            trajectory=done,
        )
        subject = SUBJECTS.judgement(done.task.split, rubric, done.episode)
        self.judged_seqs.append(await self.bus.append(SUBJECTS.judged, subject, judgement))

    async def announce(self, version: int, *, parent: int | None, num_trajectories: int, judged_seq: int) -> None:
        checkpoint = Checkpoint(
            run=builders.RUN,
            version=PolicyVersion(version),
            uri="file:///v",
            files=(),
            parent=None if parent is None else PolicyVersion(parent),
            trainer_step=version,
            judged_seq=judged_seq,
            num_trajectories=num_trajectories,
        )
        await self.bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(checkpoint.version), checkpoint)

    async def begin(self) -> None:
        for name, attempts in (("a", 1), ("b", 2), ("c", 1), ("d", 1)):
            done = await self.play(name, attempts=attempts)
            await self.publish(done)
            await self.judge(done)
        await self.announce(0, parent=None, num_trajectories=0, judged_seq=0)
        await self.announce(1, parent=0, num_trajectories=2, judged_seq=self.judged_seqs[1])

    async def findings(self) -> Findings:
        return (await audit(self.bus, self.config)).findings


Damage = Callable[[World], Awaitable[None]]


@pytest.fixture
async def world() -> World:
    built = World()
    await built.begin()
    return built


async def test_a_sound_run_holds(world: World) -> None:
    await world.announce(2, parent=1, num_trajectories=4, judged_seq=world.judged_seqs[3])

    findings = await world.findings()

    assert findings.holds, findings
    assert (findings.num_tasks, findings.num_trajectories, findings.num_judgements) == (4, 4, 4)
    assert findings.num_takeovers == 1


async def test_judgements_of_another_split_are_not_counted_against_a_checkpoint(world: World) -> None:
    task = builders.task("e", split=Split.EVAL)
    await chain.admit(world.bus, SUBJECTS, task)
    done = await chain.cancel(world.bus, SUBJECTS, task, Outcome.CANCELLED, "enough", 0.0)
    await world.publish(done)
    excluded = Judgement(
        episode=done.episode,
        group=task.group,
        split=task.split,
        rubric="r1",
        verdict=Verdict.EXCLUDED,
        reward=None,
        trajectory=done,
    )
    await world.bus.append(SUBJECTS.judged, SUBJECTS.judgement(task.split, "r1", done.episode), excluded)
    last = await world.play("f")
    await world.publish(last)
    await world.judge(last)
    await world.announce(2, parent=1, num_trajectories=4, judged_seq=world.judged_seqs[3])

    assert (await world.findings()).holds


async def test_a_second_rubric_is_checked_and_never_counted(world: World) -> None:
    """It says the opposite, and says it before the rubric that the run is trained by."""
    world.config = replace(world.config, bus_config=replace(CONFIG, rubrics=("r1", "r2")))
    ends = {record.episode: record for record in (await read_ledger(world.bus, SUBJECTS)).published}
    first = list(world.judged_seqs)
    for name in ("a", "b", "c", "d"):
        record = await world.bus.last(SUBJECTS.trajectories, SUBJECTS.trajectory(Split.TRAIN, builders.task(name).episode))
        assert record is not None
        assert isinstance(record.message, Trajectory)
        await world.judge(record.message, rubric="r2", verdict=Verdict.FAILURE)
    for name in ("e", "f"):
        done = await world.play(name)
        await world.publish(done)
        await world.judge(done, rubric="r2", verdict=Verdict.FAILURE)
        assert f"{done.episode} by r1" in (await world.findings()).unjudged
        await world.judge(done)
    last = world.judged_seqs[-1]
    await world.announce(2, parent=1, num_trajectories=4, judged_seq=first[3])
    assert (await world.findings()).unused == ("2 judgements that no version consumed",)
    await world.announce(3, parent=2, num_trajectories=6, judged_seq=last)
    found = await audit(world.bus, world.config)
    assert found.holds, found.findings
    assert (found.findings.num_judgements, found.findings.num_trajectories) == (12, len(ends) + 2)
    assert found.metrics()[Waiting.JUDGEMENT].num_waits == 6, "one per episode"

    await world.announce(4, parent=3, num_trajectories=8, judged_seq=last)
    assert (await world.findings()).miscounted == (f"version 4 ends at judgement {last}; its last one stands at nowhere",)


async def test_passes_over_stored_judgements_are_recounted(world: World) -> None:
    """Offline, five in batches of two, two passes: the last batch of a pass is shorter."""
    done = await world.play("e")
    await world.publish(done)
    await world.judge(done)
    world.config = replace(world.config, feeder_config=FeederConfig(mode="offline", num_stored=5))
    seqs = world.judged_seqs
    ends = [(4, seqs[3]), (5, seqs[4]), (7, seqs[1]), (9, seqs[3]), (10, seqs[4])]
    for version, (total, seq) in enumerate(ends, start=2):
        await world.announce(version, parent=version - 1, num_trajectories=total, judged_seq=seq)
    findings = await world.findings()
    assert findings.holds, findings

    await world.announce(7, parent=6, num_trajectories=12, judged_seq=seqs[0])
    assert (await world.findings()).miscounted == (f"version 7 ends at judgement {seqs[0]}; its last one stands at {seqs[1]}",)


async def test_what_is_written_while_the_streams_are_read_breaks_no_promise(world: World) -> None:
    """Streams are read one after the other; a run that goes on adds to those that are read last."""
    await world.announce(2, parent=1, num_trajectories=4, judged_seq=world.judged_seqs[3])

    class Going(MemoryBus):
        """Plays another batch between any two reads of streams."""

        num_played = 0

        async def read_bytes(self, stream: str, subject_filter: str, *, after_seq: int = 0) -> Sequence[StoredBytes]:
            found = await super().read_bytes(stream, subject_filter, after_seq=after_seq)
            for _ in range(BATCH):
                self.num_played += 1
                done = await world.play(f"more-{self.num_played}")
                await world.publish(done)
                await world.judge(done)
            version = 2 + self.num_played // BATCH
            await world.announce(
                version, parent=version - 1, num_trajectories=BATCH * version, judged_seq=world.judged_seqs[-1]
            )
            return found

    going = Going(SUBJECTS, rubrics=("r1",))
    going.__dict__ = world.bus.__dict__
    world.bus = going
    findings = await world.findings()

    assert going.num_played > 0
    assert findings.holds_so_far, findings


# damage ---------------------------------------------------------------------------------------------------------------


async def judged_twice(world: World) -> None:
    record = await world.bus.last(SUBJECTS.judged, SUBJECTS.judgements(None))
    assert record is not None
    await world.bus.append(SUBJECTS.judged, record.subject, record.message)


async def published_twice(world: World) -> None:
    record = await world.bus.last(SUBJECTS.trajectories, SUBJECTS.everything("trajectory"))
    assert record is not None
    await world.bus.append(SUBJECTS.trajectories, record.subject, record.message)


async def unfinished(world: World) -> None:
    await chain.admit(world.bus, SUBJECTS, builders.task("e"))


async def unpublished(world: World) -> None:
    await world.play("e")


async def unjudged(world: World) -> None:
    await world.publish(await world.play("e"))


async def unknown(world: World) -> None:
    await world.publish(builders.trajectory(builders.task("e")))


async def broken_chain(world: World) -> None:
    done = await world.play("e")
    stream = SUBJECTS.episodes(SUBJECTS.shard(done.episode))
    subject = SUBJECTS.chain_record(done.episode, 1, "act", 0)
    await world.bus.append(stream, subject, builders.step_request(done.task))
    await world.publish(done)
    await world.judge(done)


async def judged_something_else(world: World) -> None:
    done = await world.play("e")
    await world.publish(done)
    await world.judge(msgspec.structs.replace(done, answer="another"))


async def published_something_else(world: World) -> None:
    done = await world.play("e")
    await world.publish(msgspec.structs.replace(done, answer="another"))
    await world.judge(done)


async def rewarded_without_a_verdict(world: World) -> None:
    done = await world.play("e")
    await world.publish(done)
    await world.judge(done, verdict=Verdict.ERROR)


async def counted_twice(world: World) -> None:
    await world.announce(2, parent=1, num_trajectories=4, judged_seq=world.judged_seqs[2])


async def counted_nothing(world: World) -> None:
    await world.announce(2, parent=1, num_trajectories=2, judged_seq=world.judged_seqs[1])


async def counted_the_future(world: World) -> None:
    await world.announce(2, parent=1, num_trajectories=4, judged_seq=world.judged_seqs[3])
    await world.announce(3, parent=2, num_trajectories=6, judged_seq=world.judged_seqs[3])


async def skipped_a_version(world: World) -> None:
    await world.announce(3, parent=2, num_trajectories=4, judged_seq=world.judged_seqs[3])


async def wrong_parent(world: World) -> None:
    await world.announce(2, parent=0, num_trajectories=4, judged_seq=world.judged_seqs[3])


async def not_judged_by_the_other_rubric(world: World) -> None:
    world.config = replace(world.config, bus_config=replace(CONFIG, rubrics=("r1", "r2")))


async def never_consumed(world: World) -> None:
    """The run holds another whole batch and ends with version 1."""


async def trajectory_unreadable(world: World) -> None:
    world.bus.store(SUBJECTS.trajectories, f"{builders.RUN}.trajectory.train.x", b"\xc1")


async def judgement_unreadable_behind_the_sound_one(world: World) -> None:
    record = await world.bus.last(SUBJECTS.judged, SUBJECTS.judgements(None))
    assert record is not None
    world.bus.store(SUBJECTS.judged, record.subject, b"\xc1")


async def checkpoint_gone(world: World) -> None:
    seq = await world.bus.last_seq(SUBJECTS.checkpoints)
    del world.bus._stream(SUBJECTS.checkpoints).records[seq]


async def record_in_a_chain_gone(world: World) -> None:
    """The last of an attempt that another took over: the chain looks sound without it."""
    episode = builders.task("b").episode
    stream = SUBJECTS.episodes(SUBJECTS.shard(episode))
    records = await world.bus.history(stream, SUBJECTS.chain(episode))
    [lost] = [record for record in records if record.subject.endswith(".1.obs.0")]
    del world.bus._stream(stream).records[lost.seq]


async def record_in_a_chain_unreadable(world: World) -> None:
    episode = builders.task("b").episode
    world.bus.store(SUBJECTS.episodes(SUBJECTS.shard(episode)), SUBJECTS.chain_record(episode, 3, "start", 0), b"\xc1")


async def judged_under_anothers_name(world: World) -> None:
    record = await world.bus.last(SUBJECTS.judged, SUBJECTS.judgements(None))
    assert record is not None
    await world.bus.append(SUBJECTS.judged, SUBJECTS.judgement(Split.EVAL, "r1", EpisodeId("e")), record.message)


async def something_else_among_the_trajectories(world: World) -> None:
    task = builders.task("a")
    await world.bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(task.split, EpisodeId("e")), task)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (not_judged_by_the_other_rubric, "unjudged"),
        (never_consumed, "unused"),
        (trajectory_unreadable, "unsound"),
        (judgement_unreadable_behind_the_sound_one, "unsound"),
        (checkpoint_gone, "unsound"),
        (record_in_a_chain_gone, "unsound"),
        (record_in_a_chain_unreadable, "broken_chains"),
        (judged_under_anothers_name, "unsound"),
        (something_else_among_the_trajectories, "unsound"),
        (unfinished, "unfinished"),
        (unpublished, "unpublished"),
        (unjudged, "unjudged"),
        (unknown, "unknown"),
        (broken_chain, "broken_chains"),
        (judged_something_else, "differing"),
        (published_something_else, "differing"),
        (rewarded_without_a_verdict, "unfounded"),
        (counted_twice, "miscounted"),
        (counted_nothing, "miscounted"),
        (counted_the_future, "miscounted"),
        (skipped_a_version, "unsound"),
        (wrong_parent, "miscounted"),
    ],
)
async def test_damage_is_named(world: World, damage: Damage, found: str) -> None:
    await damage(world)

    findings = await world.findings()

    assert not findings.holds
    assert findings.faults[found], findings


@pytest.mark.parametrize("damage", [judged_twice, published_twice])
async def test_what_is_there_twice_is_counted(world: World, damage: Damage) -> None:
    await damage(world)

    findings = await world.findings()

    assert findings.num_duplicates == 1
    assert not findings.holds


# acknowledgements -----------------------------------------------------------------------------------------------------


class Running:
    """An admitted and queued episode, and the watch beside it."""

    def __init__(self) -> None:
        self.bus = MemoryBus(SUBJECTS, rubrics=("r1",))
        self.task = builders.task()
        self.judges = trajectory_queue(SUBJECTS, CONFIG, "r1")
        self.watch = AcknowledgementWatch(self.bus, SUBJECTS, CONFIG)

    async def begin(self) -> None:
        await chain.admit(self.bus, SUBJECTS, self.task)
        await self.bus.append(SUBJECTS.tasks, SUBJECTS.task(self.task.split, self.task.episode), self.task)
        await self.watch.look()

    async def acknowledge(self, queue: WorkQueue) -> None:
        async with self.bus.work(queue, prefetch=1) as inbox:
            await (await anext(inbox)).ack()

    async def finish(self, *, publish: bool) -> None:
        owner = await chain.EpisodeChain.take(self.bus, SUBJECTS, self.task, WorkerId("browser-1"))
        assert isinstance(owner, chain.EpisodeChain)
        done = builders.trajectory(self.task)
        await owner.finish(done)
        if publish:
            await chain.publish_trajectory(self.bus, SUBJECTS, done)


@pytest.fixture
async def running() -> Running:
    built = Running()
    await built.begin()
    return built


async def test_an_input_acknowledged_behind_its_outputs_is_right(running: Running) -> None:
    await running.finish(publish=True)
    await running.acknowledge(task_queue(SUBJECTS, CONFIG, Split.TRAIN))

    await running.watch.look()

    assert running.watch.violations == set()


@pytest.mark.parametrize("ended", [False, True], ids=["nothing done", "not published"])
async def test_a_task_acknowledged_before_its_outputs_is_found(running: Running, ended: bool) -> None:
    if ended:
        await running.finish(publish=False)
    await running.acknowledge(task_queue(SUBJECTS, CONFIG, Split.TRAIN))

    await running.watch.look()

    assert any(running.task.episode in violation for violation in running.watch.violations)


async def test_a_trajectory_acknowledged_before_its_judgement_is_found(running: Running) -> None:
    await running.finish(publish=True)
    await running.acknowledge(running.judges)

    await running.watch.look()

    assert running.watch.violations == {"1 trajectories were acknowledged when 0 were judged by r1"}


async def test_what_its_queue_does_not_know_of_yet_is_not_acknowledged(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server counts a record for its consumers a moment after it has stored it."""
    await running.finish(publish=True)
    depth = running.bus.depth

    async def lagging(queue: WorkQueue) -> QueueDepth | None:
        found = await depth(queue)
        return found and replace(found, num_pending=0)

    monkeypatch.setattr(running.bus, "depth", lagging)
    await running.watch.look()
    assert running.watch.violations == set()


# waits ----------------------------------------------------------------------------------------------------------------


def link(kind: Kind, at: float, attempt: int = 1) -> Link:
    return Link(kind=kind, seq=int(at * 10), time_s=at, attempt=attempt)


def test_waits_are_read_from_the_times_of_the_records() -> None:
    chain_ = [
        link(Kind.TASK, 0, 0),
        link(Kind.START, 1),
        link(Kind.OBSERVATION, 2),
        link(Kind.ANSWER, 2.5),
        link(Kind.OBSERVATION, 3),
        link(Kind.START, 8, 2),
        link(Kind.OBSERVATION, 9, 2),
        link(Kind.ANSWER, 10, 2),
    ]

    found = {(wait.what, wait.seconds) for wait in waits(Ledger(chains={EpisodeId("e"): chain_}), "r1")}

    assert found == {(Waiting.ANSWER, 0.5), (Waiting.ANSWER, 1.0), (Waiting.TAKEOVER, 5.0)}


def test_a_step_that_nobody_ever_answered_was_waited_for_until_the_end() -> None:
    chain_ = [link(Kind.TASK, 0, 0), link(Kind.START, 1), link(Kind.OBSERVATION, 2), link(Kind.DONE, 302)]

    [found] = waits(Ledger(chains={EpisodeId("e"): chain_}), "r1")

    assert (found.what, found.seconds) == (Waiting.END, 300.0)


def test_quantiles_are_values_that_occurred() -> None:
    chain_ = [link(Kind.TASK, 0, 0), link(Kind.START, 0)]
    for step in range(100):
        chain_ += [link(Kind.OBSERVATION, step * 1000.0), link(Kind.ANSWER, step * 1000.0 + step + 1)]

    found = metrics(waits(Ledger(chains={EpisodeId("e"): chain_}), "r1"))

    assert (found.num_waits, found.p50_s, found.p99_s, found.max_s) == (100, 50, 99, 100)
