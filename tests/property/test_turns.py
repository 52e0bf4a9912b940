"""Turns at sites: whatever workers do, and whichever of them are killed, no minute has more than its limit."""

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass

import anyio
import hypothesis.strategies as st
from hypothesis import given, settings

from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from bus.subjects import Subjects
from bus.turns import NoTurn, Turn, Turns
from schemas.ids import WorkerId
from schemas.messages import Role
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


@dataclass
class Held:
    stack: AsyncExitStack
    turn: Turn
    taken_at: float


class World:
    """Workers on one bus whose time the test lets pass."""

    def __init__(self, limit: SiteLimit, seed: int, num_workers: int = 10) -> None:
        self.now = 1_000_000.0
        self.limit = limit
        bus = MemoryBus(SUBJECTS, clock=lambda: self.now)
        rng = random.Random(seed)
        contexts = [
            WorkerContext(bus, SUBJECTS, Status(Role.BROWSER, WorkerId(f"b{number}"))) for number in range(num_workers)
        ]
        self.workers = [Turns(context, patience_s=0.0, rng=rng, clock=lambda: self.now) for context in contexts]
        self.under_way: list[Held] = []
        self.counted: list[float] = []
        """When those turns were had that count."""
        self.dead: list[float] = []
        """When those were had whose holder died."""
        self.num_asked = 0

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
                    world.now += amount
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
                    # Renewals go by the loop's time: whoever is under way ends before his would be due.
                    while world.under_way:
                        await world.end()
                    world.now += amount
                case _:
                    await world.end()
        while world.under_way:
            await world.end()

    anyio.run(scenario)
