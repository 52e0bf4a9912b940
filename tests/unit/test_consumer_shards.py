"""Episodes spread over several streams are read as one."""

import anyio
import pytest

from bus import After, Run
from bus.background import companion_group
from bus.memory import MemoryBus
from bus.subjects import Subjects
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.messages import Position
from tests.builders import RUN, task
from tests.deadlines import HANGS_S
from tests.support.bus.played import play

pytestmark = pytest.mark.anyio
NAMES = Subjects(RUN, 3)
TASKS = [task(f"t{index}") for index in range(6)]


@pytest.fixture
async def bus() -> MemoryBus:
    bus = MemoryBus(NAMES, BusConfig(run=RUN, num_shards=3))
    for played in TASKS:
        await play(bus, played, subjects=NAMES, num_steps=2)
    return bus


async def read(bus: MemoryBus, *, durable: str, limit: int) -> set[tuple[str, int]]:
    """The observations that are left to a reader of this name, at most so many."""
    seen: set[tuple[str, int]] = set()
    async with companion_group() as group:
        run = Run(bus, NAMES, group)
        with anyio.fail_after(HANGS_S):
            async for item in run.observations(durable=durable, follow=False):
                if len(seen) == limit:
                    break
                seen.add((item.message.episode, item.message.step))
        await run.aclose()
    return seen


async def test_every_shard_is_read_and_each_has_its_own_place(bus: MemoryBus) -> None:
    assert {NAMES.shard(played.episode) for played in TASKS} == {0, 1, 2}
    first, rest = await read(bus, durable="mine", limit=5), await read(bus, durable="mine", limit=100)
    assert len(first) == 5
    assert first.isdisjoint(rest)
    assert first | rest == {(played.episode, step) for played in TASKS for step in range(2)}
    place = await bus.last(NAMES.positions, NAMES.position("mine"))
    assert place is not None
    assert isinstance(place.message, Position)
    assert set(place.message.sequences) == {NAMES.episodes(shard) for shard in range(3)}


async def test_one_sequence_for_several_streams_is_refused(bus: MemoryBus) -> None:
    async with companion_group() as group:
        run = Run(bus, NAMES, group)
        with pytest.raises(ConfigurationError, match="3 streams, each with sequences of its own"):
            run.observations(start=After(4))
        one = run.observations(episode=TASKS[0].episode, start=After(0), follow=False)
        assert [item.message.step async for item in one] == [0, 1]
        await run.aclose()
