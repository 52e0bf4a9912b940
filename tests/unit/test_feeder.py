"""The feeder on the in-memory bus, with scripted players, policies and trainers around it."""

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import anyio.from_thread
import pytest

from bus import chain
from bus.background import background
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from bus.settlement import settle
from bus.topology import task_queue
from ops.roles import feeder as feeder_role
from ops.run.folder import RunFolder
from ops.run.joining import RoleRun
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.errors import ConfigurationError
from schemas.feeder_config import FeederConfig
from schemas.ids import PolicyVersion, TaskId, WorkerId
from schemas.messages import (
    Checkpoint,
    EpisodeCancel,
    FeederMemory,
    Heartbeat,
    Outcome,
    Role,
    ServedVersion,
    ServingState,
    Split,
    Task,
    Trajectory,
)
from schemas.objective_config import ObjectiveConfig
from tests.builders import RUN, WORKER
from tests.deadlines import HANGS_S
from tests.support.training.trainer_world import SUBJECTS, judge
from trainer.feeding.feeder import Feeder
from trainer.feeding.task_files import TaskSpec

pytestmark = pytest.mark.anyio
POLICY = WorkerId("policy-1")
CLONING = ObjectiveConfig()


def specs(count: int, prefix: str = "t") -> tuple[TaskSpec, ...]:
    return tuple(
        TaskSpec(
            task=TaskId(f"{prefix}{index}"),
            instruction="click",
            website="demo:click_button",
            domain="demo",
            subdomain="click",
            difficulty=1,
            facts=(),
            reference_answer=None,
        )
        for index in range(count)
    )


def feeder(
    bus: MemoryBus,
    config: FeederConfig,
    *,
    batch: int = 4,
    tests: int = 2,
    grace_s: float = 30.0,
    num_tasks: int = 10,
    objective: ObjectiveConfig = CLONING,
    sampler: Literal["uniform", "adaptive"] = "uniform",
    status: Status | None = None,
) -> Feeder:
    return Feeder(
        WorkerContext(bus, SUBJECTS, status or Status(Role.FEEDER, WORKER)),
        Config(
            feeder_config=config,
            env_config=EnvConfig(
                train_tasks_rollout_size=batch,
                completion_threshold=0.75,
                completion_grace_period=grace_s,
                train_tasks_sampler=sampler,
            ),
            objective_config=objective,
        ),
        train_tasks=specs(num_tasks),
        test_tasks=specs(tests, "e"),
    )


class World:
    """Browser, judge, trainer and policy of a run, as far as the feeder can see them."""

    def __init__(self, bus: MemoryBus, *, batch: int = 4) -> None:
        self.bus = bus
        self.batch = batch
        self.played: list[Task] = []
        self.judged_train = 0
        self.version = 0
        self.refuses: Callable[[Task], bool] = lambda task: False
        self.reward: Callable[[Task], float] = lambda task: 1.0
        self.changed = anyio.Event()

    @asynccontextmanager
    async def running(self, *, num_versions: int = 100) -> AsyncIterator["World"]:
        await self.publish(0)
        players = [partial(self.play, split) for split in Split]
        async with background(*players, partial(self.train, num_versions)):
            yield self

    async def play(self, split: Split) -> None:
        async with self.bus.work(task_queue(SUBJECTS, BusConfig(), split), prefetch=1) as inbox:
            async for delivery in inbox:
                async with settle(self.bus, delivery, WORKER):
                    assert isinstance(delivery.message, Task)
                    await self.episode(delivery.message)

    async def episode(self, task: Task) -> None:
        if self.refuses(task):
            return
        owner = await chain.EpisodeChain.take(self.bus, SUBJECTS, task, WORKER)
        if isinstance(owner, chain.EpisodeChain):
            done = Trajectory(task=task, attempt=owner.attempt, outcome=Outcome.DONE)
            await owner.finish(done)
            await chain.publish_trajectory(self.bus, SUBJECTS, done)
            self.played.append(task)
            await judge(self.bus, done, self.reward(task))

    async def train(self, num_versions: int) -> None:
        async with self.bus.tail(SUBJECTS.judged, SUBJECTS.judgements(Split.TRAIN)) as records:
            async for record in records:
                self.judged_train += 1
                if self.judged_train % self.batch == 0 and self.version < num_versions:
                    self.version += 1
                    await self.publish(self.version, record.seq)

    async def publish(self, version: int, judged_seq: int = 0) -> None:
        announced = Checkpoint(
            run=RUN,
            version=PolicyVersion(version),
            uri="file:///",
            files=(),
            parent=None,
            trainer_step=0,
            judged_seq=judged_seq,
        )
        await self.bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(version)), announced)
        await self.serve(version)

    async def serve(self, version: int) -> None:
        said = ServedVersion(worker=POLICY, state=ServingState.SERVING, version=PolicyVersion(version), at=0.0)
        await self.bus.append(SUBJECTS.served, SUBJECTS.served_by(POLICY), said)
        beat = Heartbeat(role=Role.POLICY, worker=POLICY, state="working", at=0.0)
        await self.bus.tell(SUBJECTS.heartbeat(Role.POLICY, POLICY), beat)

    def count(self, split: Split) -> int:
        return sum(task.split is split for task in self.played)


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus(SUBJECTS)


async def admitted(bus: MemoryBus) -> list[str]:
    return list(await bus.subjects(SUBJECTS.episodes(0), SUBJECTS.chains(0, "task")))


async def until(bus: MemoryBus, stream: str, count: int) -> None:
    """Returns when so many records were appended to a stream."""
    async with bus.tail(stream, ">") as records:
        for _ in range(count):
            await anext(records)


async def test_an_asynchronous_run_plays_exactly_its_episodes_and_ends(bus: MemoryBus) -> None:
    config = FeederConfig(num_iterations=5, max_concurrent=3, evaluate_first=True, evaluate_last=True, eval_every=2)
    status = Status(Role.FEEDER, WORKER)
    async with World(bus).running() as world:
        with anyio.fail_after(HANGS_S):
            await feeder(bus, config, status=status).run()
    told = {name: value for name, value in status.metrics.items() if name.startswith("eval_")}
    of_the_newest = {"eval_version": 5, "eval_success": 1.0, "eval_reward": 1.0}
    assert told == {"eval_episodes": 2, **of_the_newest}
    assert world.count(Split.TRAIN) == 5 * 4
    assert len({task.episode for task in world.played}) == len(world.played)
    rounds = [task.group for task in world.played if task.split is Split.EVAL]
    assert sorted(rounds) == [f"eval-r{version:04d}-e{index}" for version in (0, 2, 4, 5) for index in (0, 1)]
    assert [task.split for task in world.played[:2]] == [Split.EVAL] * 2, "the first evaluation comes before training"
    first_round = {task.task for task in world.played if task.split is Split.TRAIN and task.index < 10}
    assert len(first_round) == 10, "no task twice before all were played"


@pytest.mark.parametrize(("staleness", "expected"), [(0, 4), (1, 8), (2, 12)])
async def test_admission_stops_at_the_staleness_bound(bus: MemoryBus, staleness: int, expected: int) -> None:
    world = World(bus)
    await world.publish(0)
    async with background(feeder(bus, FeederConfig(max_staleness=staleness)).run):
        await until(bus, SUBJECTS.tasks, expected)
        await anyio.wait_all_tasks_blocked()
        assert len(await admitted(bus)) == expected
        await world.publish(1)
        await until(bus, SUBJECTS.tasks, expected + 4)
        await anyio.wait_all_tasks_blocked()
        assert len(await admitted(bus)) == expected + 4


async def test_admission_counts_from_what_is_served(bus: MemoryBus) -> None:
    """An announced version that no policy has loaded yet admits nothing: its episodes would be played by an older one."""
    world = World(bus)
    await world.publish(1)
    await world.serve(0)
    async with background(feeder(bus, FeederConfig(max_staleness=0)).run):
        await until(bus, SUBJECTS.tasks, 4)
        await anyio.wait_all_tasks_blocked()
        assert len(await admitted(bus)) == 4
        await world.serve(1)
        await until(bus, SUBJECTS.tasks, 8)


async def test_episodes_of_a_round_carry_its_version_though_policies_are_further(bus: MemoryBus) -> None:
    world = World(bus)
    await world.publish(3)
    config = FeederConfig(num_iterations=4, eval_every=1, evaluate_first=False)
    versions = {}
    async with (
        background(feeder(bus, config).run),
        bus.tail(SUBJECTS.tasks, SUBJECTS.everything("task", Split.EVAL.value)) as records,
    ):
        for _ in range(6):
            task = (await anext(records)).message
            assert isinstance(task, Task)
            versions[task.group] = task.policy_version
    assert versions == {f"eval-r{version:04d}-e{index}": version for version in (1, 2, 3) for index in (0, 1)}


async def test_no_more_than_max_concurrent_run_at_once(bus: MemoryBus) -> None:
    await World(bus).publish(0)
    async with background(feeder(bus, FeederConfig(max_concurrent=3)).run):
        await until(bus, SUBJECTS.tasks, 3)
        await anyio.wait_all_tasks_blocked()
        assert len(await admitted(bus)) == 3


async def test_a_standby_takes_over_and_admits_nothing_twice(bus: MemoryBus) -> None:
    config = FeederConfig(num_iterations=4, max_concurrent=5, evaluate_first=True, evaluate_last=True)
    world = World(bus)
    async with background(feeder(bus, config).run):
        await world.publish(0)
        await until(bus, SUBJECTS.tasks, 2)
    lost = (await bus.history(SUBJECTS.tasks, SUBJECTS.everything("task")))[0]
    bus._streams[SUBJECTS.tasks].records.pop(lost.seq)
    players = [partial(world.play, split) for split in Split]
    async with background(*players, partial(world.train, 100)):
        with anyio.fail_after(HANGS_S):
            await feeder(bus, config).run()
    assert world.count(Split.TRAIN) == 16
    assert world.count(Split.EVAL) == 4
    assert len({task.episode for task in world.played}) == 20, "what was admitted but not queued is queued again"


async def test_an_end_that_was_not_published_is_published(bus: MemoryBus) -> None:
    world = World(bus)
    await world.publish(0)
    async with background(feeder(bus, FeederConfig()).run):
        await until(bus, SUBJECTS.tasks, 1)
    task = (await bus.history(SUBJECTS.tasks, SUBJECTS.everything("task")))[0].message
    assert isinstance(task, Task)
    owner = await chain.EpisodeChain.take(bus, SUBJECTS, task, WORKER)
    assert isinstance(owner, chain.EpisodeChain)
    await owner.finish(Trajectory(task=task, attempt=1, outcome=Outcome.DONE))
    async with background(feeder(bus, FeederConfig()).run):
        with anyio.fail_after(HANGS_S):
            await until(bus, SUBJECTS.trajectories, 1)


async def test_stragglers_of_a_synchronous_batch_are_cancelled(bus: MemoryBus) -> None:
    heard: list[Sequence[str]] = []

    async def hear() -> None:
        async with bus.listen(SUBJECTS.cancel) as records:
            async for record in records:
                assert isinstance(record.message, EpisodeCancel)
                heard.append(record.message.episodes)

    config = FeederConfig(mode="sync", num_iterations=2, max_concurrent=8)
    world = World(bus)
    world.refuses = lambda task: task.index in (1, 5)
    async with world.running(), background(hear, partial(judge_cancelled, bus)):
        with anyio.fail_after(HANGS_S):
            await feeder(bus, config, grace_s=0.1).run()
    assert world.count(Split.TRAIN) == 6
    assert [len(episodes) for episodes in heard] == [1, 1]
    ends = [record.message for record in await bus.history(SUBJECTS.trajectories, SUBJECTS.everything("trajectory"))]
    outcomes = sorted(end.outcome.value for end in ends if isinstance(end, Trajectory))
    assert outcomes == ["cancelled"] * 2 + ["done"] * 6


async def judge_cancelled(bus: MemoryBus) -> None:
    async with bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory")) as records:
        async for record in records:
            if isinstance(record.message, Trajectory) and record.message.outcome is Outcome.CANCELLED:
                await judge(bus, record.message, None)


async def test_what_it_remembers_says_that_the_run_is_over_until_it_goes_on(bus: MemoryBus) -> None:
    async def finished() -> bool:
        record = await bus.last(SUBJECTS.feeding, SUBJECTS.feeder_memory)
        assert record is not None
        assert isinstance(record.message, FeederMemory)
        return record.message.finished

    async with World(bus).running() as world:
        with anyio.fail_after(HANGS_S):
            await feeder(bus, FeederConfig(num_iterations=2)).run()
            assert await finished()
            world.refuses = lambda task: True
            async with background(feeder(bus, FeederConfig(num_iterations=3)).run):
                while await finished():  # noqa: ASYNC110 - a record that is replaced has no event
                    await anyio.sleep(0.001)
            world.refuses = lambda task: False
            await feeder(bus, FeederConfig(num_iterations=2)).run()
            assert await finished(), "a standby that finds nothing to do says so as well"


async def test_evaluation_plays_one_round_and_ends(bus: MemoryBus) -> None:
    async with World(bus).running() as world:
        with anyio.fail_after(HANGS_S):
            await feeder(bus, FeederConfig(mode="eval")).run()
    assert [task.split for task in world.played] == [Split.EVAL] * 2


async def test_demonstrations_are_collected_apart_from_training(bus: MemoryBus) -> None:
    config = FeederConfig(mode="rollout", num_iterations=2, demonstrate=True)
    async with World(bus).running() as world:
        with anyio.fail_after(HANGS_S):
            await feeder(bus, config).run()
    assert len(world.played) == 8
    assert all(task.demonstrate and task.episode.startswith("demo-") for task in world.played)


async def test_a_run_without_tasks_is_refused(bus: MemoryBus) -> None:
    with pytest.raises(ConfigurationError, match="train_tasks"):
        feeder(bus, FeederConfig(), num_tasks=0)
    with pytest.raises(ConfigurationError, match="test_tasks"):
        feeder(bus, FeederConfig(mode="eval"), tests=0)


async def test_cancelling_ends_at_once(bus: MemoryBus) -> None:
    with anyio.fail_after(HANGS_S):
        async with background(feeder(bus, FeederConfig()).run):
            await anyio.wait_all_tasks_blocked()


def test_offline_training_has_no_feeder() -> None:
    with pytest.raises(ConfigurationError, match="no feeder is needed"):
        feeder(MemoryBus(SUBJECTS), FeederConfig(mode="offline", num_stored=4))


async def test_task_files_are_read_beside_heartbeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, released, ran = anyio.Event(), threading.Event(), anyio.Event()

    def read(_config: Config, _name: str) -> tuple[TaskSpec, ...]:
        anyio.from_thread.run_sync(begun.set)
        assert released.wait(HANGS_S), "whoever reads keeps everything else from going on"
        return specs(2)

    async def run(_feeder: Feeder) -> None:
        ran.set()

    monkeypatch.setattr(feeder_role, "tasks_of", read)
    monkeypatch.setattr(Feeder, "run", run)
    context = WorkerContext(MemoryBus(SUBJECTS), SUBJECTS, Status(Role.FEEDER, WORKER))
    config = Config(feeder_config=FeederConfig(mode="async"))
    async with anyio.create_task_group() as group:
        group.start_soon(feeder_role.feed, RoleRun(RunFolder(tmp_path), config, context))
        await begun.wait()
        released.set()
    assert ran.is_set()
