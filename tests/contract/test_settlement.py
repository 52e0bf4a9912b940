"""What becomes of a delivery, on both buses, for every way its handling can end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from bus.ports import Delivery, Inbox
from bus.settlement import settle
from bus.topology import task_queue
from schemas.errors import ChainConflict, ConfigurationError, MessageCorrupt, PageFailed
from schemas.messages import DeadLetter, Split
from tests.builders import WORKER, task
from tests.contract.backends import CONFIG, SUBJECTS, Backend

pytestmark = pytest.mark.anyio
QUEUE = task_queue(SUBJECTS, CONFIG, Split.TRAIN)
SUBJECT = SUBJECTS.task(Split.TRAIN, task().episode)


@asynccontextmanager
async def one_queued(backend: Backend) -> AsyncIterator[Inbox]:
    await backend.bus.append(SUBJECTS.tasks, SUBJECT, task())
    async with backend.bus.work(QUEUE, prefetch=0) as inbox:
        yield inbox


async def receive(inbox: Inbox) -> Delivery:
    with anyio.fail_after(10):
        delivery: Delivery = await anext(inbox)
    return delivery


async def is_settled(backend: Backend) -> bool:
    return not await backend.bus.subjects(SUBJECTS.tasks, SUBJECT)


async def dead_letter(backend: Backend) -> DeadLetter | None:
    record = await backend.bus.last(SUBJECTS.advisories, SUBJECTS.dead(SUBJECTS.tasks))
    if record is None:
        return None
    assert isinstance(record.message, DeadLetter)
    return record.message


def fail(error: Exception) -> None:
    """Raises where the type checker cannot see it: `settle` may end an error."""
    raise error


async def test_handled_is_acknowledged(backend: Backend) -> None:
    async with one_queued(backend) as inbox, settle(backend.bus, await receive(inbox), WORKER):
        assert not await is_settled(backend)
    assert await is_settled(backend)


async def test_a_failure_worth_retrying_comes_again_later(backend: Backend) -> None:
    async with one_queued(backend) as inbox:
        began = anyio.current_time()
        async with settle(backend.bus, await receive(inbox), WORKER):
            fail(PageFailed("the page died"))
        again = await receive(inbox)
        assert anyio.current_time() - began > 0.15
        assert again.num_delivered == 2
        async with settle(backend.bus, again, WORKER):
            pass
    assert await is_settled(backend)


async def test_work_that_somebody_else_owns_comes_again_if_he_dies(backend: Backend) -> None:
    """A fenced worker's acknowledgement would take the message from the new owner, too."""
    async with one_queued(backend) as inbox:
        async with settle(backend.bus, await receive(inbox), WORKER):
            fail(ChainConflict("theirs"))
        assert not await is_settled(backend)
        again = await receive(inbox)
        assert again.num_delivered == 2
        await again.ack()
    assert await is_settled(backend)


async def test_corrupt_bytes_go_to_the_dead_letters(backend: Backend) -> None:
    await backend.bus.append_bytes(SUBJECTS.tasks, SUBJECT, b"\xc1 garbage")
    async with backend.bus.work(QUEUE, prefetch=0) as inbox:
        delivery = await receive(inbox)
        async with settle(backend.bus, delivery, WORKER):
            _ = delivery.message
    letter = await dead_letter(backend)
    assert letter is not None
    assert (letter.data, letter.subject, letter.stream) == (b"\xc1 garbage", SUBJECT, SUBJECTS.tasks)
    assert await is_settled(backend)


async def test_a_fatal_failure_hands_it_back_at_once(backend: Backend) -> None:
    async with one_queued(backend) as inbox:
        with pytest.raises(ConfigurationError):
            async with settle(backend.bus, await receive(inbox), WORKER):
                fail(ConfigurationError("no browser"))
        began = anyio.current_time()
        assert (await receive(inbox)).num_delivered == 2
        assert anyio.current_time() - began < QUEUE.ack_wait_s


async def test_an_unexpected_error_hands_it_back_and_comes_out_as_it_is(backend: Backend) -> None:
    async with one_queued(backend) as inbox:
        with pytest.raises(ZeroDivisionError):
            async with settle(backend.bus, await receive(inbox), WORKER):
                fail(ZeroDivisionError())
        assert (await receive(inbox)).num_delivered == 2


async def test_a_cancelled_handler_hands_it_back(backend: Backend) -> None:
    async with one_queued(backend) as inbox:
        with anyio.CancelScope() as scope:
            async with settle(backend.bus, await receive(inbox), WORKER):
                scope.cancel()
                await anyio.sleep_forever()
        assert (await receive(inbox)).num_delivered == 2


async def test_long_work_is_not_delivered_twice(backend: Backend) -> None:
    async with one_queued(backend) as inbox, settle(backend.bus, await receive(inbox), WORKER):
        with anyio.move_on_after(2 * QUEUE.ack_wait_s):
            await anext(inbox)
            pytest.fail("delivered twice")
    assert await is_settled(backend)


async def test_errors_inside_a_group_count_by_the_gravest(backend: Backend) -> None:
    async with one_queued(backend) as inbox, settle(backend.bus, await receive(inbox), WORKER):
        fail(ExceptionGroup("tasks", [ChainConflict("theirs"), ExceptionGroup("more", [MessageCorrupt("broken")])]))
    letter = await dead_letter(backend)
    assert letter is not None
    assert letter.reason == "broken"
