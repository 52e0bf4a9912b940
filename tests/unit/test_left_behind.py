"""Policies that cannot load a version, and the feeder that admits by what is served: real ones, over the in-memory bus."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from agents.weight_sources import WeightSources
from bus.companions import companions
from bus.memory import MemoryBus
from bus.presence import presence
from schemas.bus_config import BusConfig
from schemas.errors import CheckpointCorrupt
from schemas.feeder_config import FeederConfig
from schemas.ids import WorkerId
from schemas.messages import Checkpoint, Heartbeat, Role
from tests.unit.test_feeder import admitted, feeder, until
from tests.unit.test_policy_worker import SUBJECTS, ScriptedEngine, a_checkpoint, announce, worker_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
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
async def policy(bus: MemoryBus, folder: Path, name: str, *, refused: float = 0) -> AsyncIterator[None]:
    """A worker with its heartbeats, that is refused versions so often."""
    sources = Refusing.so_often(bus, folder / name, refused)
    async with (
        presence(bus, SUBJECTS, Role.POLICY, WorkerId(name)) as status,
        companions(worker_of(bus, ScriptedEngine(), name, status=status, sources=sources).run),
    ):
        yield


async def are_heard(bus: MemoryBus, *names: str) -> None:
    """Returns when these workers have said that they are at work."""
    missing = set(names)
    async with bus.tail(SUBJECTS.heartbeats, SUBJECTS.everything("heartbeat", "policy")) as records:
        with anyio.fail_after(20):
            while missing:
                beat = (await anext(records)).message
                assert isinstance(beat, Heartbeat)
                missing -= {beat.worker} if beat.state in ("waiting", "working") else set()


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_one_refusal_does_not_stop_a_run(bus: MemoryBus, tmp_path: Path, mode: str) -> None:
    config = FeederConfig(mode=mode, max_staleness=0)  # type: ignore[arg-type]
    await announce(bus, a_checkpoint(tmp_path, 0))
    async with policy(bus, tmp_path, "p1", refused=1), companions(feeder(bus, config).run):
        await are_heard(bus, "p1")
        await until(bus, SUBJECTS.tasks, _BATCH)
        await announce(bus, a_checkpoint(tmp_path, 1))
        with anyio.fail_after(20):
            await until(bus, SUBJECTS.tasks, 2 * _BATCH)


async def test_a_policy_that_cannot_follow_is_waited_for_by_nobody(bus: MemoryBus, tmp_path: Path) -> None:
    await announce(bus, a_checkpoint(tmp_path, 0))
    async with policy(bus, tmp_path, "broken", refused=math.inf), policy(bus, tmp_path, "sound"):
        await are_heard(bus, "broken", "sound")
        async with companions(feeder(bus, FeederConfig(max_staleness=0)).run):
            await until(bus, SUBJECTS.tasks, _BATCH)
            for version in (1, 2, 3):
                await announce(bus, a_checkpoint(tmp_path, version))
                with anyio.fail_after(20):
                    await until(bus, SUBJECTS.tasks, (version + 1) * _BATCH)
            assert len(await admitted(bus)) == 4 * _BATCH
