"""Turns at sites: whatever workers do, and whichever of them are killed, no minute has more than its limit."""

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass

import anyio
import anyio.lowlevel
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from bus.background import companion_group
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.ports import Expect
from bus.presence import Status
from bus.subjects import Subjects
from bus.turns import NoTurn, Turn, Turns
from schemas.errors import BusUnavailable
from schemas.ids import WorkerId
from schemas.messages import AnyMessage, Role
from schemas.site_limit import SiteLimit
from tests import builders

SUBJECTS = Subjects(builders.RUN)
MINUTE_S, SURE_S = 60.0, 45.0
Steps = list[tuple[str, float]]
STEPS = st.lists(
    st.one_of(
        st.just(("take", 0.0)),
        st.just(("take_and_die", 0.0)),
        st.just(("end", 0.0)),
        st.just(("end_unused", 0.0)),
        st.tuples(st.just("pass"), st.sampled_from([0.5, 7.0, 29.0, 61.0])),
    ),
    max_size=60,
)


async def settled() -> None:
    """Whoever had something to do has done it: the bus of this process waits for nothing."""
    for _ in range(30):
        await anyio.lowlevel.checkpoint()


class Time:
    """Passes when the test says so, for all who sleep by it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self._sleepers: list[tuple[float, anyio.Event]] = []

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0.0:
            await anyio.lowlevel.checkpoint()
            return
        sleeper = self.now + seconds, anyio.Event()
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    async def passes(self, seconds: float) -> None:
        until = self.now + seconds
        await settled()
        while self._sleepers and (first := min(self._sleepers, key=lambda sleeper: sleeper[0]))[0] <= until:
            self.now = first[0]
            first[1].set()
            await settled()
        self.now = until


@dataclass
class Held:
    stack: AsyncExitStack
    turn: Turn
    taken_at: float


class World:
    """Workers on one bus whose time the test lets pass."""

    def __init__(self, limit: SiteLimit, seed: int, num_workers: int = 10, patience_s: float = 0.0) -> None:
        self.time = Time()
        self.limit = limit
        self.bus = MemoryBus(SUBJECTS, clock=lambda: self.now)
        rng = random.Random(seed)
        contexts = [
            WorkerContext(self.bus, SUBJECTS, Status(Role.BROWSER, WorkerId(f"b{number}"))) for number in range(num_workers)
        ]
        self.workers = [
            Turns(context, patience_s=patience_s, rng=rng, clock=lambda: self.now, sleep=self.time.sleep)
            for context in contexts
        ]
        self.under_way: list[Held] = []
        self.acting: list[anyio.Event] = []
        """Of each action under way that goes on by itself: ends it."""
        self.most_acting = 0
        self.counted: list[float] = []
        """When those turns were had that count."""
        self.dead: list[float] = []
        """When those were had whose holder died."""
        self.num_asked = 0

    @property
    def now(self) -> float:
        return self.time.now

    async def ask(self) -> Turn | None:
        worker = self.workers[self.num_asked % len(self.workers)]
        self.num_asked += 1
        try:
            turn = await worker.wait("shop.example", "", self.limit)
        except NoTurn:
            return None
        self.counted.append(self.now)
        return turn

    async def take(self) -> bool:
        if (turn := await self.ask()) is None:
            return False
        stack = AsyncExitStack()
        await stack.enter_async_context(self.workers[0].under_way(turn))
        self.under_way.append(Held(stack, turn, self.now))
        return True

    async def take_and_die(self) -> bool:
        if await self.ask() is None:
            return False
        self.dead.append(self.now)
        return True

    async def act(self) -> None:
        if (turn := await self.ask()) is None:
            return
        async with self.workers[0].under_way(turn):
            self.acting.append(ended := anyio.Event())
            self.most_acting = max(self.most_acting, len(self.acting))
            await ended.wait()
            self.acting.remove(ended)

    async def end(self, *, used: bool = True) -> None:
        if not self.under_way:
            return
        held = self.under_way.pop()
        held.turn.is_used = used
        await held.stack.aclose()
        if not used and self.now - held.taken_at < SURE_S:
            self.counted.remove(held.taken_at)

    def num_in_last_minute(self, moments: list[float]) -> int:
        return sum(at >= self.now - MINUTE_S for at in moments)


@settings(max_examples=60)
@given(steps=STEPS, per_minute=st.integers(1, 4), seed=st.integers(0, 1000))
def test_no_minute_has_more_turns_than_its_limit_and_none_goes_to_waste(steps: Steps, per_minute: int, seed: int) -> None:
    async def scenario() -> None:
        world = World(SiteLimit(per_minute=per_minute), seed)
        for what, amount in steps:
            is_free = world.num_in_last_minute(world.counted) < per_minute
            match what:
                case "take":
                    assert await world.take() is is_free
                case "take_and_die":
                    assert await world.take_and_die() is is_free
                case "pass":
                    await world.time.passes(amount)
                case _:
                    await world.end(used=what == "end")
        for first in world.counted:
            assert sum(first <= at < first + MINUTE_S for at in world.counted) <= per_minute
        while world.under_way:
            await world.end()

    anyio.run(scenario)


@settings(max_examples=60)
@given(steps=STEPS, in_flight=st.integers(1, 3), seed=st.integers(0, 1000))
def test_no_more_are_under_way_than_may_be_and_the_dead_are_forgotten(steps: Steps, in_flight: int, seed: int) -> None:
    async def scenario() -> None:
        world = World(SiteLimit(in_flight=in_flight), seed)
        for what, amount in steps:
            is_free = len(world.under_way) + world.num_in_last_minute(world.dead) < in_flight
            match what:
                case "take":
                    assert await world.take() is is_free
                case "take_and_die":
                    assert await world.take_and_die() is is_free
                case "pass":
                    await world.time.passes(amount)
                case _:
                    await world.end()
        while world.under_way:
            await world.end()

    anyio.run(scenario)


@settings(max_examples=100)
@given(
    steps=st.lists(
        st.one_of(
            st.sampled_from([("act", 0.0), ("end", 0.0)]), st.tuples(st.just("pass"), st.sampled_from([7.0, 29.0, 61.0]))
        ),
        max_size=16,
    ),
    in_flight=st.integers(1, 2),
    per_minute=st.integers(1, 2),
    seed=st.integers(0, 1000),
)
def test_both_limits_hold_however_long_a_turn_is_waited_for(steps: Steps, in_flight: int, per_minute: int, seed: int) -> None:
    async def scenario() -> None:
        world = World(SiteLimit(in_flight=in_flight, per_minute=per_minute), seed, patience_s=100_000.0)
        async with companion_group() as group:
            for what, amount in steps:
                match what:
                    case "act":
                        group.start_soon(world.act)
                    case "pass":
                        await world.time.passes(amount)
                    case _ if world.acting:
                        world.acting[0].set()
                await settled()
        assert world.most_acting <= in_flight
        for first in world.counted:
            assert sum(first <= at < first + MINUTE_S for at in world.counted) <= per_minute

    anyio.run(scenario)


@pytest.mark.anyio
async def test_what_waits_for_the_minute_keeps_its_place_among_those_under_way() -> None:
    world = World(SiteLimit(in_flight=1, per_minute=1), seed=1, patience_s=600.0)
    await world.workers[1].wait("shop.example", "", SiteLimit(per_minute=1))
    await world.time.passes(5.0)
    async with companion_group() as group:
        group.start_soon(world.act)
        await world.time.passes(58.0)
        assert len(world.acting) == 1, "its minute was free again"
        await world.time.passes(6.0)
        await nobody_else_has_a_turn(world)


@pytest.mark.anyio
async def test_who_lost_that_place_meanwhile_waits_for_another() -> None:
    world = World(SiteLimit(in_flight=1, per_minute=1), seed=1, patience_s=600.0)
    await world.workers[1].wait("shop.example", "", SiteLimit(per_minute=1))
    async with companion_group() as group:
        group.start_soon(world.act)
        await world.time.passes(1.0)
        flight = SUBJECTS.turn("flight", "shop.example", "", "*")
        assert await world.bus.purge(SUBJECTS.turns, flight) == 1
        async with world.workers[2].under_way(await world.workers[2].wait("shop.example", "", SiteLimit(in_flight=1))):
            await world.time.passes(90.0)
            assert not world.acting
        await world.time.passes(90.0)
        assert len(world.acting) == 1


@pytest.mark.anyio
async def test_a_renewal_whose_answer_is_lost_is_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(SiteLimit(in_flight=1), seed=1)
    append, lost = world.bus.append, [True]

    async def answer_lost(stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        seq = await append(stream, subject, message, expect=expect)
        if expect is not None and expect.last_seq and lost:
            lost.pop()
            raise BusUnavailable("no answer")
        return seq

    monkeypatch.setattr(world.bus, "append", answer_lost)
    assert await world.take()
    for _ in range(20):
        await world.time.passes(9.0)
        await nobody_else_has_a_turn(world)
    assert not lost
    await world.end()
    assert await world.bus.subjects(SUBJECTS.turns, SUBJECTS.everything("turn")) == {}, "it was given back"


async def nobody_else_has_a_turn(world: World) -> None:
    other = Turns(WorkerContext(world.bus, SUBJECTS, Status(Role.BROWSER, WorkerId("other"))), patience_s=0.0)
    with pytest.raises(NoTurn):
        await other.wait("shop.example", "", SiteLimit(in_flight=1))
