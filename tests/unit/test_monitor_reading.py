"""How long a command waits until its monitor has read what the streams hold: as long as more of it comes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from bus.memory import MemoryBus
from bus.ports import Record
from bus.subjects import Subjects
from ops.commands import monitor
from ops.config.loading import load_config
from ops.monitor.watch import MonitorWatch, monitoring
from schemas.errors import BusUnavailable
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role, Split
from tests.builders import RUBRIC, RUN, judgement, task, trajectory
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(RUN)
CONFIG = load_config("simulation", [])
CONFIG = replace(CONFIG, bus_config=replace(CONFIG.bus_config, run=RUN, rubrics=(RUBRIC,)))


class SlowWatch(MonitorWatch):
    """Reads a record in all the time that it is given."""

    def __init__(self, *, num_stored: int, num_readable: int) -> None:
        super().__init__(MemoryBus(SUBJECTS), SUBJECTS, CONFIG, disk=None)
        self._num_stored, self._num_readable = num_stored, num_readable

    async def wait_complete(self) -> None:
        self.num_read = min(self.num_read + 1, self._num_readable)
        if self.num_read < self._num_stored:
            await anyio.sleep_forever()


class HangingBus(MemoryBus):
    """Does not confirm the first of each of its listeners."""

    def __init__(self) -> None:
        super().__init__(SUBJECTS, CONFIG.bus_config)
        self._tried = set[str]()

    @asynccontextmanager
    async def listen(self, subject_filter: str) -> AsyncIterator[AsyncIterator[Record]]:
        if subject_filter not in self._tried:
            self._tried.add(subject_filter)
            raise BusUnavailable(f"listening to {subject_filter} failed")
        async with super().listen(subject_filter) as heard:
            yield heard


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that a monitor is given is over at once."""
    monkeypatch.setattr(monitor, "_STALLED_S", 0.0)


@pytest.mark.usefixtures("at_once")
async def test_a_monitor_that_reads_on_is_waited_for() -> None:
    watch = SlowWatch(num_stored=5, num_readable=5)
    with anyio.fail_after(HANGS_S):
        await monitor._complete(watch)
    assert watch.num_read == 5


@pytest.mark.usefixtures("at_once")
async def test_a_monitor_to_which_nothing_comes_is_given_up() -> None:
    watch = SlowWatch(num_stored=5, num_readable=3)
    with pytest.raises(BusUnavailable, match=r"judged.*: nothing could be read"), anyio.fail_after(HANGS_S):
        await monitor._complete(watch)
    assert watch.num_read == 3


async def test_what_comes_behind_it_is_no_part_of_what_is_to_be_read() -> None:
    """Workers are heard for as long as a run goes on."""
    bus = MemoryBus(SUBJECTS, CONFIG.bus_config)
    for name in ("t1", "t2", "t3"):
        ruled = judgement(trajectory(task(name)))
        await bus.append(SUBJECTS.judged, SUBJECTS.judgement(Split.TRAIN, RUBRIC, ruled.episode), ruled)
    async with monitoring(bus, SUBJECTS, CONFIG) as watch:
        with anyio.fail_after(HANGS_S):
            await watch.wait_complete()
            assert watch.num_read == 3
            beat = Heartbeat(role=Role.JUDGE, worker=WorkerId("judge-1"), state="working", at=0.0)
            await bus.tell(SUBJECTS.heartbeat(Role.JUDGE, beat.worker), beat)
            await watch.wait_until(lambda state: bool(state.workers.by_name))
        assert watch.num_read == 3


async def test_a_server_that_hangs_as_a_monitor_begins_is_waited_for() -> None:
    async with monitoring(HangingBus(), SUBJECTS, CONFIG) as watch:
        with anyio.fail_after(HANGS_S):
            await watch.wait_complete()
