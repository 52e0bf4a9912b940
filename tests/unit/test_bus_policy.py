"""Decisions of the bus, by value: retry delays, who may take a lease, who gets an item."""

import asyncio
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from bus.background import background
from bus.handoff import Handoff
from bus.jetstream.lease import Claim, LeaseWatch
from bus.jetstream.read import unix_seconds
from bus.jetstream.work import AckReply
from bus.settlement import attempt, retry_delay_s
from bus.subjects import Subjects
from bus.topology import streams
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable, ChainConflict, EngineFailed, MillraceError


def test_retry_delays_grow_and_then_stay() -> None:
    delays = [retry_delay_s(num_delivered) for num_delivered in range(1, 8)]
    assert delays == sorted(delays)
    assert delays[0] < 1
    assert delays[-1] == delays[-2] == 15


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("2026-01-01T00:00:00Z", 1767225600.0),
        ("2026-01-01T00:00:00.5Z", 1767225600.5),
        ("2026-01-01T00:00:00.000250Z", 1767225600.00025),
        ("2026-01-01T00:00:00.123456789Z", 1767225600.123456),
        ("", 0.0),
    ],
)
def test_the_server_s_time_stamps(stamp: str, seconds: float) -> None:
    assert unix_seconds(stamp) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "num_calls"), [(BusUnavailable("away"), 2), (ChainConflict("theirs"), 1)], ids=["worth retrying", "not"]
)
async def test_an_input_that_nobody_delivers_again(error: MillraceError, num_calls: int) -> None:
    calls = list[None]()

    async def handle() -> None:
        calls.append(None)
        raise error

    await attempt(handle, num_tries=2)
    assert len(calls) == num_calls


@pytest.mark.anyio
async def test_a_fatal_error_comes_out() -> None:
    async def handle() -> None:
        raise EngineFailed("dead")

    with pytest.raises(EngineFailed):
        await attempt(handle, num_tries=2)


class TestVigil:
    CLAIM = Claim(holder="a", ttl_s=5.0, renewal=0)

    def test_nobody_holds_it(self) -> None:
        assert LeaseWatch().patience_s(0, None, now=100.0) == 0
        assert LeaseWatch().patience_s(3, Claim(holder="a", ttl_s=5.0, renewal=0, released=True), now=100.0) == 0

    def test_a_claim_is_given_its_whole_time_from_when_it_was_seen(self) -> None:
        watch = LeaseWatch()
        assert watch.patience_s(3, self.CLAIM, now=100.0) == 5.0
        assert watch.patience_s(3, self.CLAIM, now=104.0) == 1.0
        assert watch.patience_s(3, self.CLAIM, now=105.0) == 0

    def test_a_renewed_claim_begins_again(self) -> None:
        watch = LeaseWatch()
        watch.patience_s(3, self.CLAIM, now=100.0)
        assert watch.patience_s(4, self.CLAIM, now=104.0) == 5.0


class TestAckReply:
    @pytest.mark.parametrize(
        "reply",
        ["$JS.ACK.STREAM.consumer.2.50.7.1790000000000.4", "$JS.ACK._.hash.STREAM.consumer.2.50.7.1790000000000.4.token"],
        ids=["first format", "second format"],
    )
    def test_both_formats(self, reply: str) -> None:
        assert AckReply.parse(reply) == AckReply(num_delivered=2, seq=50)


@pytest.mark.anyio
class TestHandoff:
    async def test_items_come_in_order(self) -> None:
        handoff = Handoff[int]()
        handoff.put(1)
        handoff.put(2)
        assert [await anext(handoff), await anext(handoff)] == [1, 2]

    async def test_a_reader_that_is_cancelled_as_its_item_comes_does_not_lose_it(self) -> None:
        handoff = Handoff[int]()
        reader = asyncio.current_task()
        assert reader is not None

        def put_and_cancel() -> None:
            handoff.put(7)
            reader.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(_call_when_waited_for, handoff, put_and_cancel)
            with pytest.raises(asyncio.CancelledError):
                await anext(handoff)
            reader.uncancel()
            assert await anext(handoff) == 7

    async def test_an_error_reaches_readers_now_and_later(self) -> None:
        handoff = Handoff[int]()
        handoff.fail(ValueError("gone"))
        for _ in range(2):
            with pytest.raises(ValueError, match="gone"):
                await anext(handoff)


@pytest.mark.anyio
class TestCompanions:
    async def test_the_body_s_error_comes_out_as_it_is(self) -> None:
        with pytest.raises(ZeroDivisionError):
            async with background(anyio.sleep_forever):
                raise ZeroDivisionError

    async def test_a_companion_that_fails_ends_the_body_with_its_own_error(self) -> None:
        async def fail() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            async with background(fail):
                await anyio.sleep_forever()


async def _call_when_waited_for(handoff: Handoff[int], call: Callable[[], None]) -> None:
    while not handoff.num_readers:
        await anyio.lowlevel.checkpoint()
    call()


def test_every_age_of_a_stream_is_configuration_but_that_of_turns() -> None:
    config = BusConfig(
        episodes_max_age_s=11.0,
        results_max_age_s=12.0,
        steps_max_age_s=13.0,
        heartbeats_max_age_s=14.0,
        advisories_max_age_s=15.0,
    )
    names = Subjects(config.run)
    ages = {spec.name: spec.max_age_s for spec in streams(names, config) if spec.max_age_s}
    assert ages == {
        names.episodes(0): 11.0,
        names.trajectories: 12.0,
        names.judged: 12.0,
        names.calls: 12.0,
        names.steps: 13.0,
        names.heartbeats: 14.0,
        names.advisories: 15.0,
        names.turns: 60.0,  # what a limit of so many turns a minute means
    }
