"""A site's limit: whose it is, what takes a turn, what gives one back, and what waiting for one costs an episode."""

import time
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import anyio.lowlevel
import msgspec
import pytest

from browser_workers.browser import Opening, Performed
from browser_workers.site import Documents
from browser_workers.visit import Visit
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from bus.turns import NoTurn, Turns
from schemas.browser_config import BrowserConfig
from schemas.errors import ConfigurationError
from schemas.ids import WorkerId
from schemas.messages import Action, ActionKind, Outcome, Role
from schemas.site_limit import SiteLimit, limit_of
from tests import builders
from tests.deadlines import HANGS_S
from tests.unit.test_browser_worker import SUBJECTS, ScriptedBrowser, stage

pytestmark = pytest.mark.anyio
ONE = SiteLimit(per_minute=1)
PROXY = "http://p.example:3128"


def turns(bus: MemoryBus, *, patience_s: float = 0.0, name: str = "b1") -> tuple[Turns, Status]:
    status = Status(Role.BROWSER, WorkerId(name))
    return Turns(WorkerContext(bus, SUBJECTS, status), patience_s=patience_s), status


async def somebody_waits(status: Status) -> None:
    with anyio.fail_after(HANGS_S):
        while not status.metrics.get("awaiting_turn"):
            await anyio.lowlevel.checkpoint()


def test_a_site_has_its_own_limit_or_that_of_the_domain_above_or_of_all() -> None:
    limits = {"example.org": ONE, "deep.shop.example.org": SiteLimit(per_minute=2), "default": SiteLimit(per_minute=3)}
    found = {
        site: limit_of(site, limits).per_minute
        for site in ("example.org", "shop.example.org", "a.deep.shop.example.org", "org", "other.example", "example.org:8443")
    }
    assert list(found.values()) == [1, 1, 2, 3, 3, 1]
    assert not limit_of("other.example", {}).limits


@pytest.mark.parametrize("limits", [{"https://example.org": ONE}, {"example.org/": ONE}, {"*.org": ONE}])
def test_what_is_no_site_is_refused(limits: dict[str, SiteLimit]) -> None:
    with pytest.raises(ConfigurationError, match="site_limits"):
        BrowserConfig(site_limits=limits)


def test_a_limit_below_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="per_minute is -1"):
        SiteLimit(per_minute=-1)


async def test_sites_and_egresses_have_turns_of_their_own() -> None:
    worker, _ = turns(MemoryBus(SUBJECTS))
    for site, egress in (("a.example", ""), ("b.example", ""), ("a.example", PROXY)):
        await worker.wait(site, egress, ONE)
        with pytest.raises(NoTurn, match=r"it was not its turn at [ab]\.example within 0 s"):
            await worker.wait(site, egress, ONE)


async def test_a_site_that_nobody_waits_for_is_forgotten() -> None:
    worker, _ = turns(MemoryBus(SUBJECTS))
    await worker.wait("a.example", "", ONE)
    assert not worker._waiting


async def test_whoever_waits_says_so_and_is_let_in() -> None:
    bus = MemoryBus(SUBJECTS)
    first, _ = turns(bus)
    second, status = turns(bus, patience_s=600.0, name="b2")
    limit = SiteLimit(in_flight=1)
    async with first.under_way(await first.wait("a.example", "", limit)), anyio.create_task_group() as group:
        group.start_soon(second.wait, "a.example", "", limit)
        await somebody_waits(status)
        assert status.note == "1 of its episodes wait for their turn at a.example"
        assert status.metrics["awaiting_turn"] == 1.0
        group.cancel_scope.cancel()
    assert status.note == ""
    assert status.metrics["awaiting_turn"] == 0.0
    async with second.under_way(await second.wait("a.example", "", limit)):
        with pytest.raises(NoTurn):
            await first.wait("a.example", "", limit)


async def test_what_is_given_back_twice_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server did as it was asked and its answer was lost: by then another worker has the slot."""
    bus, limit = MemoryBus(SUBJECTS), SiteLimit(in_flight=1)
    (first, _), (second, _), (third, _) = (turns(bus, name=name) for name in ("b1", "b2", "b3"))
    purge, asked = bus.purge, list[Callable[[], Awaitable[int]]]()

    async def noted(stream: str, subject: str, *, up_to: int) -> int:
        asked.append(partial(purge, stream, subject, up_to=up_to))
        return await asked[-1]()

    monkeypatch.setattr(bus, "purge", noted)
    async with first.under_way(await first.wait("a.example", "", limit)):
        pass
    async with second.under_way(await second.wait("a.example", "", limit)):
        await asked[0]()
        with pytest.raises(NoTurn):
            await third.wait("a.example", "", limit)


async def visited(action: Action | None, performed: Performed, *, played: bool = False) -> int:
    """Turns of the site that an action took."""
    bus = MemoryBus(SUBJECTS)
    worker, _ = turns(bus)
    visit = Visit(turns=worker, limits={"default": SiteLimit(per_minute=9, in_flight=9)})
    visit.begin(Opening("http://a.example/", site=Documents("http://a.example", {}) if played else None))

    class Pausing:
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    async with visit.turn(action, "", Pausing) as turn:
        if action is not None:
            visit.led_to(performed, action, turn)
    flights = await bus.subjects(SUBJECTS.turns, SUBJECTS.turn("flight", "a.example", "", "*"))
    assert flights == {}, "nothing is under way any more"
    return len(await bus.subjects(SUBJECTS.turns, SUBJECTS.turn("minute", "a.example", "", "*")))


@pytest.mark.parametrize(
    ("action", "num_documents", "num_turns"),
    [
        (None, 1, 1),
        (Action(kind=ActionKind.NAVIGATE, text="a.example/more"), 0, 1),
        (Action(kind=ActionKind.NAVIGATE, text="https://b.example"), 1, 0),
        (Action(kind=ActionKind.GO_BACK), 0, 1),
        (Action(kind=ActionKind.CLICK, point=(1, 1)), 1, 1),
        (Action(kind=ActionKind.CLICK, point=(1, 1)), 0, 0),
        (Action(kind=ActionKind.TYPE, text="lamp", enter=True), 1, 1),
        (Action(kind=ActionKind.SCROLL, direction="down"), 1, 0),
        (Action(kind=ActionKind.WAIT), 1, 0),
        (Action(kind=ActionKind.ANSWER, text="blue"), 0, 0),
    ],
)
async def test_what_takes_a_turn(action: Action | None, num_documents: int, num_turns: int) -> None:
    assert await visited(action, Performed(num_documents=num_documents)) == num_turns
    assert await visited(action, Performed(num_documents=num_documents), played=True) == 0


async def test_an_episode_without_a_turn_fails_and_says_why() -> None:
    config = BrowserConfig(site_limits={"default": ONE}, site_wait_s=0.0)
    async with stage(ScriptedBrowser(clicks_to_win=9), browsers=config, server_size=1) as on:
        tasks = [msgspec.structs.replace(builders.task(f"t{number}"), website="http://site/") for number in range(2)]
        await on.admit(*tasks)
        _, wake = await on.wake()
        await on.answer(wake, Action(kind=ActionKind.NAVIGATE, text="http://site/more"))
        first = await on.ended()
    assert first.outcome is Outcome.FAILED
    assert first.error == "it was not its turn at site within 0 s (browser_config.site_limits)"


async def test_waiting_for_a_turn_takes_nothing_of_the_tasks_time() -> None:
    bus_time = {"now": time.time()}
    config = BrowserConfig(site_limits={"default": ONE}, site_wait_s=600.0)
    async with stage(ScriptedBrowser(), browsers=config, clock=lambda: bus_time["now"]) as on:
        task = msgspec.structs.replace(builders.task(), website="http://site/", timeout_s=600.0)
        other, _ = turns(on.bus, name="b2")
        await other.wait("site", "http://p0.example:3128", ONE)
        await on.admit(task)
        await somebody_waits(on.status)
        await anyio.sleep(0.3)
        bus_time["now"] += 61.0
        _, wake = await on.wake()
        bus_time["now"] += 61.0
        await on.answer(wake)
        ended = await on.ended()
    assert ended.outcome is Outcome.DONE
    assert ended.timings.waited_s >= 0.3
    assert ended.timings.reset_s <= ended.timings.total_s - 0.3
