"""Which queue gets the next slot."""

import anyio
import pytest

from agents.slot_scheduler import SlotScheduler, Source, next_source
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio


def test_own_episodes_come_first_but_for_evaluations_share() -> None:
    chosen = [next_source(set(Source), given, 10) for given in range(100)]
    assert (chosen.count(Source.EVAL), chosen.count(Source.OWN)) == (10, 90)
    assert {next_source({Source.OWN, Source.TRAIN}, given, 10) for given in range(10)} == {Source.OWN}


def test_about_a_tenth_prefers_evaluation() -> None:
    chosen = [next_source({Source.TRAIN, Source.EVAL}, given, 10) for given in range(100)]
    assert chosen.count(Source.EVAL) == 10


def test_no_seat_stays_empty() -> None:
    assert {next_source({Source.EVAL}, given, 10) for given in range(10)} == {Source.EVAL}
    assert next_source(set(), 0, 10) is None


async def test_a_seat_given_up_while_waiting_goes_on() -> None:
    slots = SlotScheduler(1)
    await slots.take(Source.TRAIN)
    got = anyio.Event()

    async def take() -> None:
        await slots.take(Source.EVAL)
        got.set()

    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as given_up:
            given_up.start_soon(slots.take, Source.OWN)
            await anyio.wait_all_tasks_blocked()
            given_up.cancel_scope.cancel()
        group.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        slots.give_back()
        with anyio.fail_after(HANGS_S):
            await got.wait()


async def test_evaluation_is_seated_though_own_episodes_wait_without_end() -> None:
    slots, order, enough = SlotScheduler(1), list[Source](), anyio.Event()

    async def serve(source: Source) -> None:
        while True:
            await slots.take(source)
            order.append(source)
            if len(order) == 200:
                enough.set()
            await anyio.wait_all_tasks_blocked()  # everybody else waits for this slot again
            slots.give_back()

    async with anyio.create_task_group() as group:
        for source in (Source.OWN, Source.OWN, Source.EVAL):
            group.start_soon(serve, source)
        with anyio.fail_after(HANGS_S):
            await enough.wait()
        group.cancel_scope.cancel()
    assert order[:200].count(Source.EVAL) == 20
