"""What becomes of a delivery, on both buses, for every way its handling can end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest
import structlog

from bus.bulkhead import Bulkhead
from bus.context import WorkerContext
from bus.fault import MOST_IN_A_ROW
from bus.ports import Delivery, Inbox
from bus.presence import Status
from bus.settlement import settle
from bus.topology import task_queue, trajectory_queue
from schemas.errors import (
    BusUnavailable,
    ChainConflict,
    ConfigurationError,
    MessageCorrupt,
    PageFailed,
    PolicyError,
    RecordGone,
    WorkerFailing,
)
from schemas.ids import WorkerId
from schemas.messages import DeadLetter, Fault, Role, Split
from tests.builders import WORKER, task, trajectory
from tests.contract.backends import CONFIG, RUBRIC, SUBJECTS, Backend, watched
from tests.deadlines import HANGS_S
from tests.support.polling import until

pytestmark = pytest.mark.anyio
QUEUE = task_queue(SUBJECTS, CONFIG, Split.TRAIN)
SUBJECT = SUBJECTS.task(Split.TRAIN, task().episode)
JUDGED = trajectory_queue(SUBJECTS, CONFIG, RUBRIC)
"""What somebody else has comes from it within a test only when it was handed back."""
assert JUDGED.ack_wait_s > 10 * HANGS_S


@asynccontextmanager
async def one_queued(backend: Backend) -> AsyncIterator[Inbox]:
    await backend.bus.append(SUBJECTS.tasks, SUBJECT, task())
    async with backend.bus.work(QUEUE, prefetch=0) as inbox:
        yield inbox


async def queue_ended(backend: Backend, *names: str) -> None:
    """Of so many episodes, by default of one."""
    for name in names or ("a",):
        ended = trajectory(task(name))
        await backend.bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(ended.task.split, ended.episode), ended)


async def receive(inbox: Inbox) -> Delivery:
    with anyio.fail_after(HANGS_S):
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
    await until(partial(is_settled, backend))


async def test_a_fatal_failure_hands_it_back_at_once(backend: Backend) -> None:
    await queue_ended(backend)
    async with backend.bus.work(JUDGED, prefetch=0) as inbox:
        with pytest.raises(ConfigurationError):
            async with settle(backend.bus, await receive(inbox), WORKER):
                fail(ConfigurationError("no browser"))
        assert (await receive(inbox)).num_delivered == 2


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
    is_spoilt = True
    while is_spoilt:
        again = list[Delivery]()
        async with (
            one_queued(backend) as inbox,
            watched(backend.other, QUEUE) as stall,
            settle(backend.bus, await receive(inbox), WORKER),
        ):
            with anyio.move_on_after(2 * QUEUE.ack_wait_s):
                again.append(await anext(inbox))
        assert await is_settled(backend)
        is_spoilt = stall.spoils(QUEUE)
    assert again == []


async def test_errors_inside_a_group_count_by_the_gravest(backend: Backend) -> None:
    async with one_queued(backend) as inbox, settle(backend.bus, await receive(inbox), WORKER):
        fail(ExceptionGroup("tasks", [ChainConflict("theirs"), ExceptionGroup("more", [MessageCorrupt("broken")])]))
    letter = await dead_letter(backend)
    assert letter is not None
    assert letter.reason == "broken"


class TestBehindABulkhead:
    """What nobody foresaw, met at a delivery."""

    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What failed comes again at once."""
        monkeypatch.setattr("bus.settlement.retry_delay_s", lambda _: 0.0)

    async def test_it_comes_again_and_is_a_dead_letter_at_the_third_try_whoever_tries(self, backend: Backend) -> None:
        error = KeyError("price")
        async with one_queued(backend) as inbox:
            for number in (1, 2, 3):
                status = Status(Role.BROWSER, WorkerId(f"browser-{number}"))
                bulkhead = Bulkhead(WorkerContext(backend.bus, SUBJECTS, status))
                assert await dead_letter(backend) is None
                async with settle(backend.bus, await receive(inbox), status.worker, bulkhead=bulkhead):
                    fail(error)
                assert status.heartbeat(0.0).metrics == {"unexpected": 1.0}
        letter = await dead_letter(backend)
        assert letter is not None
        assert letter.reason.startswith("unexpected at 3 tries: KeyError: 'price' (contract/test_settlement.py:")
        await until(partial(is_settled, backend))
        told = [record.message for record in await backend.bus.history(SUBJECTS.advisories, SUBJECTS.everything("fault"))]
        assert [fault.worker for fault in told if isinstance(fault, Fault)] == ["browser-1", "browser-2", "browser-3"]

    async def test_what_a_leaving_worker_hands_back_is_not_given_to_itself(self, backend: Backend) -> None:
        """Its other slots wait still; what a server gives them is lost for an ack wait when nobody hears it any more."""

        async def serve(inbox: Inbox) -> None:
            async with settle(backend.bus, await anext(inbox), WORKER):
                await anyio.sleep(0.2)  # until the server knows what the other slots ask for
                fail(ConfigurationError("the key is refused"))

        async def lead() -> None:
            async with backend.bus.work(JUDGED, prefetch=0) as inbox, anyio.create_task_group() as group:
                for _ in range(16):
                    group.start_soon(serve, inbox)

        await queue_ended(backend)
        with pytest.raises(BaseExceptionGroup) as raised:
            await lead()
        assert [type(error) for error in raised.value.exceptions] == [ConfigurationError]
        async with backend.bus.work(JUDGED, prefetch=0) as inbox:
            assert (await receive(inbox)).num_delivered == 2

    async def test_what_is_handed_back_where_a_worker_stays_comes_again(self, backend: Backend) -> None:
        async with one_queued(backend) as inbox:
            with pytest.raises(ConfigurationError):
                async with settle(backend.bus, await receive(inbox), WORKER):
                    fail(ConfigurationError("the key is refused"))
            again = await receive(inbox)
            assert again.num_delivered == 2
            await again.ack()

    async def test_neither_outages_nor_stops_are_tries(self, backend: Backend) -> None:
        bulkhead = Bulkhead(WorkerContext(backend.bus, SUBJECTS, Status(Role.BROWSER, WORKER)))
        async with one_queued(backend) as inbox:
            for _ in range(5):
                await (await receive(inbox)).nak()
            for error in (BusUnavailable("away"), KeyError("price"), BusUnavailable("away"), KeyError("price")):
                async with settle(backend.bus, await receive(inbox), WORKER, bulkhead=bulkhead):
                    fail(error)
            async with settle(backend.bus, await receive(inbox), WORKER, bulkhead=bulkhead):
                pass
        assert await dead_letter(backend) is None
        assert await is_settled(backend)

    async def test_what_cannot_be_told_is_no_try_and_comes_again(self, backend: Backend) -> None:
        bulkhead = Bulkhead(WorkerContext(Untold(), SUBJECTS, Status(Role.BROWSER, WORKER)))  # type: ignore[arg-type]
        async with one_queued(backend) as inbox:
            for _ in range(4):
                async with settle(backend.bus, await receive(inbox), WORKER, bulkhead=bulkhead):
                    fail(KeyError("price"))
            assert await dead_letter(backend) is None
            await (await receive(inbox)).ack()

    async def test_what_is_ended_in_terms_of_its_own_needs_no_letter(self, backend: Backend) -> None:
        reasons: list[str] = []

        async def end(reason: str) -> bool:
            reasons.append(reason)
            return True

        bulkhead = Bulkhead(WorkerContext(backend.bus, SUBJECTS, Status(Role.BROWSER, WORKER)))
        async with (
            one_queued(backend) as inbox,
            settle(backend.bus, await receive(inbox), WORKER, bulkhead=bulkhead, on_reject=end),
        ):
            fail(RecordGone("it has aged out \ud800"))
        assert reasons == ["it has aged out \ufffd"]
        assert await dead_letter(backend) is None
        assert await is_settled(backend)

    async def test_a_hook_that_fails_leaves_a_letter(self, backend: Backend) -> None:
        async def end(reason: str) -> bool:
            raise KeyError(reason)

        async with one_queued(backend) as inbox, settle(backend.bus, await receive(inbox), WORKER, on_reject=end):
            fail(RecordGone("it has aged out"))
        letter = await dead_letter(backend)
        assert letter is not None
        assert letter.reason == "it has aged out"

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (KeyError("price"), [(5, 0.01), (6, 0.02)]),
            (BusUnavailable("it is away"), [(5, 0.02), (6, 0.02)]),
            (PolicyError("not yet"), [(5, 0.05), (6, 0.06)]),
        ],
    )
    async def test_deliveries_that_are_no_fault_of_an_input_do_not_put_it_off(
        self, backend: Backend, monkeypatch: pytest.MonkeyPatch, error: Exception, expected: list[tuple[int, float]]
    ) -> None:
        monkeypatch.setattr("bus.settlement.retry_delay_s", lambda num_tried: num_tried / 100)
        bulkhead = Bulkhead(WorkerContext(backend.bus, SUBJECTS, Status(Role.BROWSER, WORKER)))
        async with one_queued(backend) as inbox:
            for _ in range(4):
                await (await receive(inbox)).nak()
            with structlog.testing.capture_logs() as logs:
                for _ in range(2):
                    async with settle(backend.bus, await receive(inbox), WORKER, bulkhead=bulkhead):
                        fail(error)
        assert [(line["delivered"], line["delay_s"]) for line in logs if line["event"] == "work_retried"] == expected

    async def test_the_same_at_item_after_item_ends_the_worker_and_hands_back(self, backend: Backend) -> None:
        bulkhead = Bulkhead(WorkerContext(backend.bus, SUBJECTS, Status(Role.BROWSER, WORKER)))
        await queue_ended(backend, *(f"t{number}" for number in range(MOST_IN_A_ROW)))
        async with backend.bus.work(JUDGED, prefetch=0) as inbox:
            deliveries = [await receive(inbox) for _ in range(MOST_IN_A_ROW)]
            for delivery in deliveries[:-1]:
                async with settle(backend.bus, delivery, WORKER, bulkhead=bulkhead):
                    fail(KeyError("price"))
            with pytest.raises(WorkerFailing, match="KeyError: 'price'"):
                async with settle(backend.bus, deliveries[-1], WORKER, bulkhead=bulkhead):
                    fail(KeyError("price"))
        told = await backend.bus.history(SUBJECTS.advisories, SUBJECTS.everything("fault"))
        assert len(told) == MOST_IN_A_ROW - 1


class Untold:
    """A bus on which nothing can be told now."""

    async def append(self, *_: object, **__: object) -> int:
        raise BusUnavailable("away")
