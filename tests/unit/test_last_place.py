"""The last place of a durable reader is written however slow the server is, and waits for none that is away."""

import anyio
import anyio.lowlevel
import pytest

from bus.consumer import position
from bus.consumer.position import DurablePlace
from bus.consumer.start import BEGINNING
from bus.memory import MemoryBus
from bus.ports import Expect
from schemas.messages import AnyMessage, Position
from tests import builders
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio


class Slow(MemoryBus):
    """Answers later than a reader waits for a connection; where it is cut off, never."""

    is_up = True

    async def is_up_within(self, timeout_s: float) -> bool:
        return self.is_up

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        await (anyio.lowlevel.checkpoint() if self.is_up else anyio.sleep_forever())
        return await super().append(stream, subject, message, expect=expect)


@pytest.mark.parametrize("is_up", [True, False])
async def test_a_reader_that_leaves_writes_its_place_if_there_is_a_connection(
    is_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(position, "_CLOSING_S", 0.0)
    bus, task = Slow(SUBJECTS), builders.task()
    await bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(task.split, task.episode), builders.trajectory(task))
    record = await bus.get(SUBJECTS.trajectories, 1)
    assert record is not None
    place = DurablePlace(bus, SUBJECTS, "mine")
    await place.claim((SUBJECTS.trajectories,), BEGINNING)
    place.passed(record)
    bus.is_up = is_up
    with anyio.fail_after(HANGS_S):
        await place.close()
    kept = await bus.last(SUBJECTS.positions, SUBJECTS.position("mine"))
    assert kept is not None
    assert isinstance(kept.message, Position)
    assert kept.message.sequences == {SUBJECTS.trajectories: int(is_up)}
