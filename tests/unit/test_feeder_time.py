"""A feeder that takes over after its predecessor's records have aged out, on the in-memory bus with a clock set by hand."""

from collections import Counter
from functools import partial
from typing import Literal

import anyio
import anyio.lowlevel
import pytest

from bus.background import background
from bus.memory import MemoryBus
from schemas.bus_config import BusConfig
from schemas.feeder_config import FeederConfig
from schemas.messages import FeederMemory, Split, Task
from tests.deadlines import HANGS_S
from tests.support.training.trainer_world import SUBJECTS
from tests.unit.test_feeder import World, feeder

pytestmark = pytest.mark.anyio
DAY_S = 86_400.0


class Calendar:
    """Unix seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s

    def pass_days(self, days: float) -> None:
        self.now_s += days * DAY_S


def begun_twice(world: World) -> list[str]:
    return [episode for episode, count in Counter(task.episode for task in world.played).items() if count > 1]


@pytest.mark.parametrize(("away_days", "num_lost"), [(8.0, 0), (31.0, 4)], ids=["chains", "chains and results"])
async def test_nothing_is_begun_twice_when_records_have_aged_out(
    away_days: float, num_lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`num_lost`: judged, and gone before a version could consume them: others are played in their place."""
    monkeypatch.setattr("trainer.feeding.recollection._AGAIN_S", 0.0)
    calendar = Calendar()
    bus = MemoryBus(SUBJECTS, BusConfig(), clock=calendar)
    world, config = World(bus), FeederConfig(max_staleness=0)
    async with world.running(num_versions=3):
        async with background(feeder(bus, config).run):
            with anyio.fail_after(HANGS_S):
                await until_known(bus, 16)
        calendar.pass_days(away_days)
        async with background(feeder(bus, config).run):
            with anyio.fail_after(HANGS_S):
                await until_played(world, 16 + num_lost)
            await anyio.wait_all_tasks_blocked()
            assert begun_twice(world) == []
            assert world.count(Split.TRAIN) == 16 + num_lost, "the bound of version 3 is reached"
            await world.publish(4)
            with anyio.fail_after(HANGS_S):
                await until_played(world, 20 + num_lost)
    assert begun_twice(world) == []


async def test_a_chain_that_aged_out_before_it_was_queued_is_not_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The feeder dies between the two; when the next one comes, the chain's days are over, those of results are not."""
    calendar = Calendar()
    bus = MemoryBus(SUBJECTS, BusConfig(), clock=calendar)
    admitted: list[str] = []
    first = feeder(bus, FeederConfig(max_staleness=0))
    queued = first._admitter._queue

    async def dies(task: Task) -> None:
        if task.index == 0:
            await anyio.sleep_forever()
        await queued(task)

    monkeypatch.setattr(first._admitter, "_queue", dies)
    async with bus.tail(SUBJECTS.episodes(0), SUBJECTS.chains(0, "task")) as chains:
        async with background(first.run):
            admitted += [(await anext(chains)).subject for _ in range(4)]
            await anyio.wait_all_tasks_blocked()
        calendar.pass_days(8.0)
        async with background(feeder(bus, FeederConfig(max_staleness=0)).run):
            with anyio.fail_after(HANGS_S):
                admitted.append((await anext(chains)).subject)
    assert max(Counter(admitted).values()) == 1, "another is admitted in its place"


async def until_known(bus: MemoryBus, count: int) -> None:
    """Returns when the feeder has written down that so many episodes were judged."""
    async with bus.tail(SUBJECTS.feeding, SUBJECTS.feeder_memory) as records:
        async for record in records:
            if isinstance(memory := record.message, FeederMemory) and memory.num_accepted == count:
                return


async def until_played(world: World, count: int) -> None:
    """Nothing announces what a scripted world has played."""
    while world.count(Split.TRAIN) < count:  # noqa: ASYNC110
        await anyio.sleep(0.01)


@pytest.mark.parametrize(("mode", "sampler"), [("async", "uniform"), ("sync", "uniform"), ("async", "adaptive")])
async def test_forty_days_with_a_failover_a_day(
    mode: Literal["async", "sync"], sampler: Literal["uniform", "adaptive"]
) -> None:
    """Each day's feeder dies at any moment; nothing is begun twice, and no takeover costs more than the first ones."""
    calendar = Calendar()
    bus = MemoryBus(SUBJECTS, BusConfig(), clock=calendar)
    config = FeederConfig(mode=mode, num_iterations=120, max_staleness=1, eval_every=12)
    admitted: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    records_read: list[float] = []

    async def count(stream: str, subject: str, counter: Counter[str]) -> None:
        async with bus.tail(stream, subject) as records:
            async for record in records:
                counter[record.subject] += 1

    world = World(bus)
    async with (
        background(
            partial(count, SUBJECTS.episodes(0), SUBJECTS.chains(0, "task"), admitted),
            partial(count, SUBJECTS.trajectories, SUBJECTS.everything("trajectory"), ended),
        ),
        world.running(num_versions=120),
    ):
        for day in range(40):
            tended = feeder(bus, config, sampler=sampler)
            with anyio.fail_after(HANGS_S):
                async with background(tended.run):
                    while world.version < 3 * (day + 1) - day % 2:
                        await anyio.lowlevel.checkpoint()
            records_read.append(tended._status.metrics["resume_records"])
            calendar.pass_days(1.0)
        with anyio.fail_after(HANGS_S):
            await feeder(bus, config, sampler=sampler).run()
        await anyio.wait_all_tasks_blocked()
    assert set(admitted.values()) == set(ended.values()) == {1}
    assert begun_twice(world) == []
    assert world.version == 120
    assert world.count(Split.TRAIN) == len(admitted) - world.count(Split.EVAL) == 480
    assert max(records_read[20:]) <= max(records_read[:20]), "the last takeover costs what the first did"
    assert (await bus.stream_state(SUBJECTS.judged)).first_seq > 1, "results have aged out"
