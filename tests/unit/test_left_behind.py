"""Policies that cannot load a version, and the feeder that admits by what is served: real ones, over the in-memory bus."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
from structlog.testing import capture_logs

from agents.following import Following
from agents.serving import ServedRecord, away_outside
from agents.weight_sources import WeightSources
from agents.weights import AnnouncedWeights
from bus.background import background
from bus.memory import MemoryBus
from bus.ports import Record
from bus.presence import presence
from schemas.bus_config import BusConfig
from schemas.errors import CheckpointCorrupt
from schemas.feeder_config import FeederConfig
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Checkpoint, FileHash, Heartbeat, Role, ServedVersion, ServingState
from tests.deadlines import HANGS_S
from tests.support.bus.local_weights import local_weights
from tests.unit.test_feeder import admitted, feeder, until
from tests.unit.test_policy_worker import SUBJECTS, ScriptedEngine, a_checkpoint, an_episode, announce, running, worker_of

pytestmark = [pytest.mark.anyio]
_BATCH = 4


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus(SUBJECTS)


class Refusing(WeightSources):
    """Nothing but version 0 is what was announced, so often."""

    times: float

    @classmethod
    def so_often(cls, bus: MemoryBus, cache: Path, times: float) -> "Refusing":
        made = cls(bus, SUBJECTS, BusConfig(weights="path"), cache=cache, base=None)
        made.times = times
        return made

    async def folder(self, checkpoint: Checkpoint) -> Path:
        if checkpoint.version > 0 and self.times > 0:
            self.times -= 1
            raise CheckpointCorrupt("model.safetensors does not match its hash")
        return await super().folder(checkpoint)


@asynccontextmanager
async def policy(bus: MemoryBus, folder: Path, name: str, *, refused: float = 0) -> AsyncIterator[Refusing]:
    """A worker with its heartbeats, that is refused versions so often."""
    sources = Refusing.so_often(bus, folder / name, refused)
    async with (
        presence(bus, SUBJECTS, Role.POLICY, WorkerId(name)) as status,
        background(worker_of(bus, ScriptedEngine(), name, status=status, sources=sources).run),
    ):
        yield sources


async def are_heard(bus: MemoryBus, *names: str) -> None:
    """Returns when these workers have said that they are at work."""
    missing = set(names)
    async with bus.tail(SUBJECTS.heartbeats, SUBJECTS.everything("heartbeat", "policy")) as records:
        with anyio.fail_after(HANGS_S):
            while missing:
                beat = (await anext(records)).message
                assert isinstance(beat, Heartbeat)
                missing -= {beat.worker} if beat.state in ("waiting", "working") else set()


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_one_refusal_does_not_stop_a_run(bus: MemoryBus, tmp_path: Path, mode: str) -> None:
    config = FeederConfig(mode=mode, max_staleness=0)  # type: ignore[arg-type]
    await announce(bus, a_checkpoint(tmp_path, 0))
    async with policy(bus, tmp_path, "p1", refused=1), background(feeder(bus, config).run):
        await are_heard(bus, "p1")
        await until(bus, SUBJECTS.tasks, _BATCH)
        await announce(bus, a_checkpoint(tmp_path, 1))
        with anyio.fail_after(HANGS_S):
            await until(bus, SUBJECTS.tasks, 2 * _BATCH)


async def test_a_policy_that_cannot_follow_is_waited_for_by_nobody(bus: MemoryBus, tmp_path: Path) -> None:
    await announce(bus, a_checkpoint(tmp_path, 0))
    async with policy(bus, tmp_path, "broken", refused=math.inf), policy(bus, tmp_path, "sound"):
        await are_heard(bus, "broken", "sound")
        async with background(feeder(bus, FeederConfig(max_staleness=0)).run):
            await until(bus, SUBJECTS.tasks, _BATCH)
            for version in (1, 2, 3):
                await announce(bus, a_checkpoint(tmp_path, version))
                with anyio.fail_after(HANGS_S):
                    await until(bus, SUBJECTS.tasks, (version + 1) * _BATCH)
            assert len(await admitted(bus)) == 4 * _BATCH


async def test_an_announcement_in_vain_is_said_once_and_forgotten_at_the_next(bus: MemoryBus, tmp_path: Path) -> None:
    engine, told = ScriptedEngine(), list[tuple[int, int | None]]()

    async def tell(following: Following) -> None:
        told.append((following.served, following.wanted.version if following.wanted else None))

    weights = AnnouncedWeights(bus, SUBJECTS, engine.load, engine.version, local_weights(bus, SUBJECTS), tell)
    await announce(bus, a_checkpoint(tmp_path, 1))
    await weights.catch_up()
    foreign = FileHash(path="passwd", sha256="00" * 32, num_bytes=1)
    await announce(bus, msgspec.structs.replace(a_checkpoint(tmp_path, 2), files=(foreign,)))
    with capture_logs() as logs:
        for _ in range(3):
            await weights.catch_up()
    assert [(entry["event"], entry["version"]) for entry in logs] == [("checkpoint_refused", 2)]
    await announce(bus, a_checkpoint(tmp_path, 3))
    await weights.catch_up()
    assert told == [(1, None), (1, 2), (3, None)]


async def test_a_policy_that_is_left_behind_takes_no_steps_until_it_has_caught_up(bus: MemoryBus, tmp_path: Path) -> None:
    """The steps of its own episodes go to the others too."""
    await announce(bus, a_checkpoint(tmp_path, 0))
    browser = await an_episode(bus)
    async with policy(bus, tmp_path, "broken", refused=math.inf) as sources, policy(bus, tmp_path, "sound"):
        await are_heard(bus, "broken", "sound")
        await announce(bus, a_checkpoint(tmp_path, 1))
        await until_said(bus, "broken", ServingState.UNABLE, 0)
        await until_said(bus, "sound", ServingState.SERVING, 1)
        wake = await browser.observe()
        while await bus.offer(SUBJECTS.wake(WorkerId("broken")), wake, timeout_s=1):
            await anyio.wait_all_tasks_blocked()
        sources.times = 0
        await until_said(bus, "broken", ServingState.SERVING, 1)
        with anyio.fail_after(HANGS_S):
            while not await bus.offer(SUBJECTS.wake(WorkerId("broken")), wake, timeout_s=1):
                await anyio.wait_all_tasks_blocked()


async def until_said(bus: MemoryBus, worker: str, state: ServingState, version: int) -> None:
    async with bus.tail(SUBJECTS.served, SUBJECTS.served_by(WorkerId(worker))) as records:
        with anyio.fail_after(HANGS_S):
            async for record in records:
                assert isinstance(record.message, ServedVersion)
                if (record.message.state, record.message.version) == (state, version):
                    return


async def test_a_version_is_said_before_anything_is_answered_and_after_it_was_loaded(bus: MemoryBus, tmp_path: Path) -> None:
    """As long as the word is not confirmed, nobody counts the version."""
    await announce(bus, a_checkpoint(tmp_path, 1))
    engine = ScriptedEngine()
    said_before = list[Record]()

    async def load() -> None:
        said_before.extend(await bus.history(SUBJECTS.served, SUBJECTS.everything("served")))

    engine.loading = load
    browser = await an_episode(bus)
    async with running(worker_of(bus, engine)):
        step = await browser.step()
    (record,) = await bus.history(SUBJECTS.served, SUBJECTS.everything("served"))
    assert said_before == []
    assert isinstance(record.message, ServedVersion)
    assert (record.message.state, record.message.version, record.message.announced_seq) == (ServingState.SERVING, 1, 1)
    assert step.versions[0].version == 1


async def test_whoever_starts_or_leaves_serves_nothing(bus: MemoryBus) -> None:
    worker = WorkerId("p1")
    record = ServedRecord(bus, SUBJECTS, worker)
    serving = ServedVersion(worker=worker, state=ServingState.SERVING, version=PolicyVersion(3), at=0.0)
    states = []

    async def note() -> None:
        (newest,) = await bus.history(SUBJECTS.served, SUBJECTS.everything("served"))
        assert isinstance(newest.message, ServedVersion)
        states.append(newest.message.state)

    await record.write(serving)
    async with away_outside(bus, SUBJECTS, worker):
        await note()
        await record.write(serving)
        await note()
    await note()
    assert states == [ServingState.AWAY, ServingState.SERVING, ServingState.AWAY]
