"""A worker that is told to take no more steps, and called back."""

import anyio
import pytest

from agents.duty import Duty
from bus.handoff import Handoff
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio


async def test_turning_off_cancels_waiting_and_what_comes_later_is_not_lost() -> None:
    duty, steps, taken = Duty(), Handoff[int](), list[int | None]()

    async def take() -> None:
        taken.append(await duty.while_on(lambda: anext(steps)))

    with anyio.fail_after(HANGS_S):
        async with anyio.create_task_group() as group:
            group.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            duty.turn(False)
        steps.put(1)
        await take()
        assert taken == [None, None]
        duty.turn(True)
        await take()
    assert taken == [None, None, 1]


async def test_whoever_waits_goes_on_when_it_is_called_back() -> None:
    duty = Duty()
    duty.turn(False)
    with anyio.fail_after(HANGS_S):
        async with anyio.create_task_group() as group:
            group.start_soon(duty.wait_on)
            await anyio.wait_all_tasks_blocked()
            duty.turn(True)


async def test_what_was_begun_is_finished_when_it_is_turned_off_from_within() -> None:
    duty = Duty()

    async def work() -> int:
        return 7

    assert await duty.while_on(work) == 7
