"""A replay at a chosen speed on a real server: a consumer that listens hears an episode when it is due, not before."""

from pathlib import Path

import anyio
import msgspec
import pytest

from bus import NEW, connect
from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.archive.importer import Importer
from ops.archive.stream_source import StreamSource
from ops.replay.player import Pace, play
from ops.replay.request import Selection
from schemas.ids import RunName
from schemas.messages import Trajectory
from tests.contract.backends import SUBJECTS
from tests.support.runs import archive_world as world
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SOURCE = Subjects(RunName("played"))
ENDS = (1000.0, 1020.0, 1020.0, 1100.0)
SPEED = 10.0


class Clock:
    """Time passes only while the replay sleeps; it sleeps only when the consumer has everything that was due."""

    def __init__(self) -> None:
        self.now = 50.0
        self.heard: list[tuple[float, Trajectory]] = []
        self.num_due = 0
        self.changed = anyio.Event()

    def __call__(self) -> float:
        return self.now

    def hear(self, trajectory: Trajectory) -> None:
        self.heard.append((self.now, trajectory))
        self.changed.set()
        self.changed = anyio.Event()

    async def sleep(self, seconds: float) -> None:
        while len(self.heard) < self.num_due:
            await self.changed.wait()
        self.now += seconds
        self.num_due += 1


async def stored() -> MemoryBus:
    bus = MemoryBus(SOURCE)
    for index, ended_at in enumerate(ENDS):
        played = await world.play(bus, SOURCE, world.task(index, run=SOURCE.run), num_steps=1)
        done = msgspec.structs.replace(played, ended_at=ended_at)
        await bus.append(SOURCE.trajectories, SOURCE.trajectory(done.task.split, done.episode), done)
    return bus


async def test_a_live_consumer_hears_each_episode_at_its_time(tmp_path: Path) -> None:
    clock, source = Clock(), StreamSource(await stored(), SOURCE)
    async with (
        running_run(tmp_path / "run") as bus,
        connect(tmp_path / "run", name="live") as run,
        run.trajectories(start=NEW) as live,
        anyio.create_task_group() as group,
    ):

        async def consume() -> None:
            async for item in live:
                clock.hear(item.message)

        group.start_soon(consume)
        pace = Pace(SPEED, clock=clock, sleep=clock.sleep)
        await play(source, Importer(bus=bus, subjects=SUBJECTS), Selection(), pace=pace, judgements=False)
        await clock.sleep(0.0)
        group.cancel_scope.cancel()
    assert [trajectory.ended_at for _, trajectory in clock.heard] == list(ENDS)
    assert [at - 50.0 for at, _ in clock.heard] == pytest.approx([(end - ENDS[0]) / SPEED for end in ENDS])
