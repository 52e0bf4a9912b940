"""The feeder leaves blocked sites out of training, and goes by one rubric: on the in-memory bus."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import anyio
import pytest

from bus.background import background
from bus.blocklist import block
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from bus.server_time import ServerClock
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.ids import WorkerId
from schemas.messages import Role, SiteBlock, Split, Task
from tests.deadlines import HANGS_S
from tests.support.training.trainer_world import SUBJECTS, judge
from tests.unit.test_feeder import World, specs, until
from trainer.feeding import feeder as feeder_module
from trainer.feeding.feeder import Feeder
from trainer.feeding.stragglers import StragglerClock
from trainer.feeding.task_files import TaskSpec

pytestmark = pytest.mark.anyio
BATCH = 4


def on_sites(count: int, num_sites: int, prefix: str = "t") -> tuple[TaskSpec, ...]:
    return tuple(
        replace(spec, website=f"https://www.site-{index % num_sites}.org/") for index, spec in enumerate(specs(count, prefix))
    )


class Wall(ServerClock):
    """The server's clock, set by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def bus(wall: Wall) -> MemoryBus:
    return MemoryBus(SUBJECTS, clock=wall)


@pytest.fixture(autouse=True)
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeder_module, "_TICK_S", 0.02)


class Fed:
    """A feeder, and what it says of itself."""

    def __init__(
        self, bus: MemoryBus, wall: Wall, config: FeederConfig, *, num_sites: int = 2, name: str = "feeder-1"
    ) -> None:
        self.status = Status(Role.FEEDER, WorkerId(name))
        self.feeder = Feeder(
            WorkerContext(bus, SUBJECTS, self.status),
            Config(
                feeder_config=config,
                env_config=EnvConfig(train_tasks_rollout_size=BATCH, completion_threshold=0.5, completion_grace_period=0.0),
            ),
            train_tasks=on_sites(10, num_sites),
            test_tasks=on_sites(2, num_sites, "e"),
            clock=wall,
        )

    async def says(self, holds: Callable[[Status], bool]) -> None:
        """Looks at the status at each of the feeder's ticks: nothing announces it."""
        with anyio.fail_after(HANGS_S):
            while not holds(self.status):  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def leave_out(bus: MemoryBus, site: str, until_s: float) -> None:
    """From the time on that it was at first."""
    said = SiteBlock(site=site, until=until_s, reason="captcha", at=1000.0)
    await bus.append(SUBJECTS.blocklist, SUBJECTS.blocked(site), said)


async def queued(bus: MemoryBus) -> list[Task]:
    records = await bus.history(SUBJECTS.tasks, SUBJECTS.everything("task"))
    return [record.message for record in records if isinstance(record.message, Task)]


@asynccontextmanager
async def playing(bus: MemoryBus) -> AsyncIterator[World]:
    world = World(bus, batch=BATCH)
    async with world.running():
        yield world


async def test_blocked_sites_are_left_out_of_training_and_not_of_evaluation(bus: MemoryBus, wall: Wall) -> None:
    await leave_out(bus, "site-1.org", 2000.0)
    fed = Fed(bus, wall, FeederConfig(num_iterations=5, evaluate_first=True, evaluate_last=True))
    async with playing(bus) as world:
        with anyio.fail_after(HANGS_S):
            await fed.feeder.run()
    trained = [task.website for task in world.played if task.split is Split.TRAIN]
    assert trained == ["https://www.site-0.org/"] * 20
    assert {task.website for task in world.played if task.split is Split.EVAL} == {
        "https://www.site-0.org/",
        "https://www.site-1.org/",
    }
    assert fed.status.metrics["blocked_sites"] == 1


async def test_a_site_that_is_blocked_while_it_runs_keeps_what_is_queued(bus: MemoryBus, wall: Wall) -> None:
    fed = Fed(bus, wall, FeederConfig(max_staleness=0))
    world = World(bus)
    await world.publish(0)
    async with background(fed.feeder.run):
        await until(bus, SUBJECTS.tasks, BATCH)
        await block(bus, SUBJECTS, "site-0.org", hours=1.0, reason="captcha")
        await fed.says(lambda status: status.metrics.get("blocked_sites") == 1)
        assert len(await queued(bus)) == BATCH, "what was queued stays"
        await world.publish(1)
        await until(bus, SUBJECTS.tasks, 2 * BATCH)
    assert {task.website for task in (await queued(bus))[BATCH:]} == {"https://www.site-1.org/"}


@pytest.mark.parametrize("ends", ["by itself", "by hand"])
async def test_when_every_site_is_blocked_it_waits_and_goes_on_by_itself(bus: MemoryBus, wall: Wall, ends: str) -> None:
    for site, end in (("site-0.org", 1500.0), ("site-1.org", 1600.0)):
        await leave_out(bus, site, end)
    fed = Fed(bus, wall, FeederConfig(num_iterations=2))
    async with playing(bus) as world, background(fed.feeder.run):
        await fed.says(lambda status: status.state == "waiting")
        assert fed.status.note == "all 2 training sites are blocked until 1970-01-01 00:25:00 UTC"
        assert fed.status.metrics["blocked_sites"] == 2
        assert world.played == []
        if ends == "by itself":
            wall.now_s = 1500.0
        else:
            await leave_out(bus, "site-0.org", 0.0)
        await fed.says(lambda status: status.state == "finished")
    assert [task.website for task in world.played] == ["https://www.site-0.org/"] * 2 * BATCH
    assert fed.status.note == ""


async def test_waiting_for_a_site_is_no_busy_loop(bus: MemoryBus, wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeder_module, "_TICK_S", 0.1)
    looks = 0

    class Watched(Wall):
        def __call__(self) -> float:
            nonlocal looks
            looks += 1
            return wall.now_s

    await leave_out(bus, "site-0.org", 2000.0)
    fed = Fed(bus, Watched(), FeederConfig(num_iterations=2), num_sites=1)
    await World(bus).publish(0)
    async with background(fed.feeder.run):
        with anyio.fail_after(HANGS_S):
            while looks < 2:  # noqa: ASYNC110 - nothing announces it
                await anyio.sleep(0.01)
        began, before = anyio.current_time(), looks
        await anyio.sleep(0.55)
        assert looks - before <= (anyio.current_time() - began) / 0.1 + 4


async def test_a_batch_that_waits_for_its_sites_has_no_stragglers(
    bus: MemoryBus, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Synchronous: one of four is admitted and has ended when every site is blocked. There is nobody to cancel."""
    heard: list[object] = []
    num_due = 0

    def due(_: StragglerClock, ended: int, now: float) -> bool:
        nonlocal num_due
        num_due += fed.status.state == "waiting"
        return fed.status.state == "waiting"

    async def hear() -> None:
        async with bus.listen(SUBJECTS.cancel) as records:
            async for record in records:
                heard.append(record.message)

    monkeypatch.setattr(StragglerClock, "due", due)
    fed = Fed(bus, wall, FeederConfig(mode="sync", num_iterations=1, max_concurrent=1), num_sites=1)
    world = World(bus, batch=BATCH)
    await world.publish(0)
    async with background(hear, fed.feeder.run):
        await until(bus, SUBJECTS.tasks, 1)
        await leave_out(bus, "site-0.org", 2000.0)
        await fed.says(lambda status: status.metrics.get("blocked_sites") == 1)
        async with background(partial(world.play, Split.TRAIN), partial(world.train, 100)):
            await fed.says(lambda status: status.state == "waiting" and num_due > 1)
            assert len(world.played) == 1
            await leave_out(bus, "site-0.org", 0.0)
            await fed.says(lambda status: status.state == "finished")
    assert len(world.played) == BATCH
    assert heard == []


async def test_a_feeder_that_takes_the_lease_over_leaves_the_same_sites_out(bus: MemoryBus, wall: Wall) -> None:
    config = FeederConfig(num_iterations=6, max_concurrent=3)
    first, second = Fed(bus, wall, config, name="feeder-1"), Fed(bus, wall, config, name="feeder-2")
    await leave_out(bus, "site-1.org", 2000.0)
    world = World(bus, batch=BATCH)
    await world.publish(0)
    leading = anyio.CancelScope()

    async def lead() -> None:
        with leading:
            await first.feeder.run()

    async with background(lead):
        await until(bus, SUBJECTS.tasks, 3)
        async with background(second.feeder.run):
            await second.says(lambda status: status.state == "standby")
            leading.cancel()
            async with background(partial(world.play, Split.TRAIN), partial(world.train, 100)):
                await second.says(lambda status: status.state == "finished")
    assert second.status.metrics["blocked_sites"] == 1
    assert len(world.played) == len({task.episode for task in world.played}) == 6 * BATCH
    assert {task.website for task in world.played} == {"https://www.site-0.org/"}


async def test_another_rubric_neither_ends_an_episode_nor_counts(bus: MemoryBus, wall: Wall) -> None:
    """The second rubric says the opposite of everything, before the first says anything."""
    world = World(bus, batch=BATCH)
    fed = Fed(bus, wall, FeederConfig(mode="rollout", num_iterations=1, max_concurrent=8), num_sites=1)

    async def contradict() -> None:
        async with bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory")) as records:
            async for record in records:
                await judge(bus, record.message, 0.0, rubric="strict")  # type: ignore[arg-type]

    players = [partial(world.play, split) for split in Split]
    await world.publish(0)
    async with background(contradict, *players):
        with anyio.fail_after(HANGS_S):
            await fed.feeder.run()
    assert len(world.played) == BATCH
    assert (fed.status.metrics["accepted"], fed.status.metrics["success"], fed.status.metrics["reward"]) == (BATCH, 1.0, 1.0)
