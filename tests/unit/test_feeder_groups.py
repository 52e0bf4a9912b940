"""The feeder admits groups, refills those without variance, and draws by results: on the in-memory bus."""

from collections import defaultdict
from dataclasses import replace
from functools import partial

import anyio
import pytest

from bus.background import background
from bus.memory import MemoryBus
from schemas.feeder_config import FeederConfig
from schemas.ids import GroupId
from schemas.messages import Judgement, Split, Task
from schemas.objective_config import ObjectiveConfig
from tests.deadlines import HANGS_S
from tests.support.training.trainer_world import SUBJECTS
from tests.unit.test_feeder import World, feeder, until
from trainer.estimators import num_members
from trainer.feeding import feeder as feeder_module
from trainer.feeding.feeder import Feeder
from trainer.group_variance import lacks_variance

pytestmark = pytest.mark.anyio
GROUPS = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=4)
REFILL = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=2, dynamic_sampling="refill", max_refill=3.0)
REMAX = ObjectiveConfig(adv_estimator="remax", loss_type="clipped", group_size=3)


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus(SUBJECTS)


@pytest.fixture(autouse=True)
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeder_module, "_TICK_S", 0.02)


class RefilledTraining(World):
    """A trainer that ends an iteration by its complete groups, as `trainer.feeding.refill` says."""

    def __init__(self, bus: MemoryBus, *, batch: int, objective: ObjectiveConfig) -> None:
        super().__init__(bus, batch=batch)
        self.objective = objective
        self.iterations: list[tuple[int, int]] = []
        """Episodes of the groups with variance, and of all groups, that each iteration took."""

    async def train(self, num_versions: int) -> None:
        groups: defaultdict[GroupId, list[float | None]] = defaultdict(list)
        useful = taken = 0
        async with self.bus.tail(SUBJECTS.judged, SUBJECTS.judgements(Split.TRAIN)) as records:
            async for record in records:
                assert isinstance(record.message, Judgement)
                rewards = groups[record.message.group]
                rewards.append(record.message.reward)
                if len(rewards) < num_members(self.objective):
                    continue
                taken += len(rewards)
                useful += 0 if lacks_variance(rewards) else len(rewards)
                if useful == self.batch or taken >= self.objective.max_refill * self.batch:
                    self.iterations.append((useful, taken))
                    useful = taken = 0
                    self.version += 1
                    await self.publish(self.version, record.seq)


def by_group(tasks: list[Task]) -> dict[GroupId, list[Task]]:
    groups: defaultdict[GroupId, list[Task]] = defaultdict(list)
    for task in sorted(tasks, key=lambda task: task.index):
        groups[task.group].append(task)
    return groups


async def admitted(bus: MemoryBus) -> list[Task]:
    records = await bus.history(SUBJECTS.episodes(0), SUBJECTS.chains(0, "task"))
    return [record.message for record in records if isinstance(record.message, Task)]


async def ended(tended: Feeder, seconds: float = HANGS_S) -> None:
    with anyio.fail_after(seconds):
        await tended.run()


async def test_every_task_is_played_by_a_whole_group_though_feeders_change(bus: MemoryBus) -> None:
    """The first one stops with five episodes admitted, so in the middle of the second group."""
    config = FeederConfig(num_iterations=5, max_concurrent=5, evaluate_last=True)
    world = World(bus, batch=8)
    async with background(feeder(bus, config, batch=8, objective=GROUPS).run):
        await world.publish(0)
        await until(bus, SUBJECTS.tasks, 5)
    async with world.running():
        await ended(feeder(bus, config, batch=8, objective=GROUPS))
    trained = [task for task in await admitted(bus) if task.split is Split.TRAIN]
    groups = by_group(trained)
    assert len(trained) == 40
    assert all(
        [task.episode for task in group] == [f"{name}-m{number}" for number in range(4)] for name, group in groups.items()
    )
    assert all(group[3].index == group[0].index + 3 and len({task.task for task in group}) == 1 for group in groups.values())
    assert world.count(Split.EVAL) == 2, "evaluation has no groups"
    assert not any(task.greedy for task in trained)


async def test_remax_plays_one_more_greedily(bus: MemoryBus) -> None:
    async with World(bus, batch=8).running() as world:
        await ended(feeder(bus, FeederConfig(num_iterations=2, evaluate_last=True), batch=8, objective=REMAX))
    groups = by_group([task for task in world.played if task.split is Split.TRAIN])
    assert [[task.greedy for task in group] for group in groups.values()] == [[False, False, False, True]] * 4
    assert not any(task.greedy for task in world.played if task.split is Split.EVAL)


async def test_groups_without_variance_are_replaced(bus: MemoryBus) -> None:
    """Every second task is solved by everybody."""
    objective = replace(REFILL, max_refill=8.0)
    world = RefilledTraining(bus, batch=4, objective=objective)
    world.reward = lambda task: float(task.episode[-1] == "1" or task.task in ("t0", "t2", "t4", "t6", "t8"))
    async with world.running():
        await ended(feeder(bus, FeederConfig(num_iterations=6), batch=4, objective=objective))
    assert [useful for useful, _ in world.iterations] == [4] * 6
    assert sum(taken for _, taken in world.iterations) > 24
    assert all(len(group) == 2 for group in by_group(world.played).values())


async def test_a_run_that_solves_everything_ends(bus: MemoryBus) -> None:
    """From the second iteration on nothing has variance; each iteration ends with max_refill times its episodes."""
    world = RefilledTraining(bus, batch=4, objective=REFILL)
    world.reward = lambda task: float(world.version > 0 or task.episode[-1] == "1")
    async with world.running():
        await ended(feeder(bus, FeederConfig(mode="sync", num_iterations=4), batch=4, objective=REFILL))
    assert world.iterations == [(4, 4), (0, 12), (0, 12), (0, 12)]
    assert len(world.played) == 40, "what an iteration left aside is not played again"


async def test_a_feeder_that_may_refill_no_more_says_so(bus: MemoryBus) -> None:
    """The trainer is away, and everything is solved."""
    tended = feeder(bus, FeederConfig(max_staleness=1), batch=4, objective=REFILL)
    world = RefilledTraining(bus, batch=4, objective=REFILL)
    await world.publish(0)
    async with background(partial(world.play, Split.TRAIN), tended.run):
        with anyio.fail_after(HANGS_S):
            await until(bus, SUBJECTS.judged, 24)
            while not tended._status.note.startswith("24 "):  # noqa: ASYNC110 - nothing announces it
                await anyio.sleep(0.01)
        assert (tended._status.state, len(world.played)) == ("waiting", 24)
        assert tended._status.note == (
            "24 episodes since version 0 are of groups with equal rewards: no more are admitted in their place "
            "(objective_config.max_refill), the trainer goes on with the groups it has"
        )
        async with background(partial(world.train, 100)):
            with anyio.fail_after(HANGS_S):
                await until(bus, SUBJECTS.judged, 30)


async def test_adaptive_rounds_are_the_same_for_whoever_takes_over(bus: MemoryBus) -> None:
    config = FeederConfig(num_iterations=6, max_concurrent=3)
    objective = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=2)
    world = World(bus, batch=8)
    world.reward = lambda task: float(task.task in ("t1", "t2", "t3"))
    async with world.running():
        for num_tasks in (7, 14, 13):
            async with background(feeder(bus, config, batch=8, objective=objective, sampler="adaptive").run):
                await until(bus, SUBJECTS.tasks, num_tasks)
        await ended(feeder(bus, config, batch=8, objective=objective, sampler="adaptive"))
    trained = await admitted(bus)
    assert len(trained) == len({task.episode for task in trained}) == 48
    rounds: defaultdict[str, set[str]] = defaultdict(set)
    seqs: defaultdict[str, set[int]] = defaultdict(set)
    for task in trained:
        rounds[task.group[:11]].add(task.task)
        seqs[task.group[:11]].add(task.results_seq)
    assert [len(tasks) for tasks in rounds.values()] == [4] * 6
    assert all(len(values) == 1 for values in seqs.values()), "one round, one moment"
    moments = [next(iter(values)) for _, values in sorted(seqs.items())]
    assert moments == sorted(moments)
    assert moments[-1] > 0
