"""Clocks that are wrong by an hour or a month keep no site blocked for longer, nor let it go earlier."""

import time
from collections.abc import Callable

import anyio
import pytest
from msgspec import structs

from bus.background import background
from bus.blocklist import block, read_blocklist
from bus.chain import publish_trajectory
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from judges.judge import Ruling
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.ids import WorkerId
from schemas.judge_config import JudgeConfig
from schemas.messages import Outcome, Role, Verdict
from tests.builders import task, trajectory
from tests.deadlines import HANGS_S
from tests.support.training.trainer_world import SUBJECTS
from tests.unit.test_feeder import World
from tests.unit.test_feeder_blocklist import on_sites
from tests.unit.test_judge_worker import RUBRICS, RulingJudge, first_judgement, judging
from tests.unit.test_judge_worker import SUBJECTS as JUDGED_SUBJECTS
from trainer.feeding.feeder import Feeder

pytestmark = pytest.mark.anyio
HOUR_S = 3600.0
SITE = "site-0.org"
wrong = pytest.mark.parametrize("shift_s", [HOUR_S, -HOUR_S, 720 * HOUR_S, -720 * HOUR_S], ids=str)


class Calendar:
    """The server's clock, moved by hand."""

    def __init__(self) -> None:
        self.now_s = time.time()

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def off(calendar: Calendar, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """This machine's clock is wrong from now on."""
    return lambda shift_s: monkeypatch.setattr(time, "time", lambda: calendar() + shift_s)


@wrong
async def test_whoever_blocks_a_site_may_have_a_wrong_clock(
    shift_s: float, calendar: Calendar, off: Callable[[float], None]
) -> None:
    bus, stored_at = MemoryBus(SUBJECTS, clock=calendar), calendar.now_s
    off(shift_s)
    await block(bus, SUBJECTS, SITE, hours=2.0, reason="captcha")
    found = await read_blocklist(bus, SUBJECTS)
    assert set(found.blocked(stored_at + 1.9 * HOUR_S)) == {SITE}
    assert not found.blocked(stored_at + 2.1 * HOUR_S)


@wrong
async def test_browser_and_judge_may_have_wrong_clocks(
    shift_s: float, calendar: Calendar, off: Callable[[float], None]
) -> None:
    """The browser's is wrong the other way round."""
    bus = MemoryBus(JUDGED_SUBJECTS, BusConfig(), RUBRICS, clock=calendar)
    of = task()
    played = trajectory(structs.replace(of, website=f"https://{SITE}/"), outcome=Outcome.BLOCKED)
    ended_at = calendar.now_s
    await publish_trajectory(bus, JUDGED_SUBJECTS, structs.replace(played, ended_at=ended_at - shift_s))
    calendar.now_s += HOUR_S
    off(shift_s)
    async with judging(bus, RulingJudge(Ruling(verdict=Verdict.FAILURE, reward=0.0)), config=JudgeConfig(blocklist_hours=2.0)):
        assert (await first_judgement(bus)).blocked
    found = await read_blocklist(bus, JUDGED_SUBJECTS)
    assert set(found.blocked(ended_at + 1.9 * HOUR_S)) == {SITE}
    assert not found.blocked(ended_at + 2.1 * HOUR_S)


@wrong
@pytest.mark.parametrize(("age_h", "num_blocked"), [(1.0, 1), (3.0, 0)])
async def test_a_feeder_may_have_a_wrong_clock(
    shift_s: float, age_h: float, num_blocked: int, calendar: Calendar, off: Callable[[float], None]
) -> None:
    bus, status = MemoryBus(SUBJECTS, clock=calendar), Status(Role.FEEDER, WorkerId("feeder-1"))
    await block(bus, SUBJECTS, SITE, hours=2.0, reason="captcha")
    calendar.now_s += age_h * HOUR_S
    off(shift_s)
    feeder = Feeder(WorkerContext(bus, SUBJECTS, status), Config(), train_tasks=on_sites(10, 2), test_tasks=())
    await World(bus).publish(0)
    async with background(feeder.run):
        with anyio.fail_after(HANGS_S):
            while "blocked_sites" not in status.metrics:  # noqa: ASYNC110 - nothing announces it
                await anyio.sleep(0.01)
    assert status.metrics["blocked_sites"] == num_blocked
