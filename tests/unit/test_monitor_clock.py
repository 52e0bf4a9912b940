"""A monitor whose own clock is wrong, or jumps, dates everything by the server's time."""

import time
from dataclasses import replace

import anyio
import pytest

from bus.memory import MemoryBus
from bus.server_time import ServerClock
from bus.subjects import Subjects
from ops.config.loading import load_config
from ops.monitor.watch import monitoring
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role
from tests import builders
from tests.deadlines import HANGS_S

SUBJECTS = Subjects(builders.RUN)
DAY_S = 86_400.0


@pytest.mark.anyio
@pytest.mark.parametrize("shift_s", [3 * DAY_S, -3 * DAY_S], ids=["ahead", "behind"])
async def test_a_worker_that_is_heard_is_not_silent(shift_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    true_s = time.time
    config = load_config("simulation", [])
    config = replace(config, bus_config=replace(config.bus_config, run=builders.RUN))
    bus = MemoryBus(SUBJECTS, config.bus_config, clock=true_s)
    monkeypatch.setattr(time, "time", lambda: true_s() + shift_s)
    beat = Heartbeat(role=Role.JUDGE, worker=WorkerId("judge-1"), state="working", at=true_s())
    await bus.tell(SUBJECTS.heartbeat(Role.JUDGE, beat.worker), beat)
    async with monitoring(bus, SUBJECTS, config) as watch:
        with anyio.fail_after(HANGS_S):
            await watch.wait_until(lambda state: bool(state.workers.by_name))
        worker = watch.state.workers.by_name[beat.worker]
        assert abs(worker.heard_at - true_s()) < 60.0
        assert abs(watch.now() - true_s()) < 60.0
        assert abs(worker.skew_s) < 60.0


def test_it_is_this_machines_clock_until_the_server_has_spoken() -> None:
    clock = ServerClock()
    clock.heard(0.0)
    assert abs(clock() - time.time()) < 60.0
    clock.heard(1000.0)
    assert 1000.0 <= clock() < 1000.0 + DAY_S
