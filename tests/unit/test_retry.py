"""Pauses and budgets by value, and the one loop that uses them."""

import random
from itertools import islice

import anyio
import pytest

from bus.retry import ASKED_AGAIN, LOOKED_FOR, REDELIVERED, ROOM_AWAITED, SERVER_AWAITED, Backoff, Budget
from bus.trying import LOOKS, Tries, look, outlast
from schemas.errors import BusUnavailable, ChainConflict

AT_ONCE = Backoff(0.0, 0.0)


def test_pauses_grow_up_to_the_longest() -> None:
    assert list(islice(Backoff(0.1, 1.0).pauses_s(), 7)) == [0.0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert list(islice(REDELIVERED.pauses_s(), 6)) == [0.0, 0.2, 1.0, 5.0, 15.0, 15.0]


@pytest.mark.parametrize("backoff", [ASKED_AGAIN, SERVER_AWAITED, ROOM_AWAITED, LOOKED_FOR, REDELIVERED])
def test_a_thousand_tries_later_the_pause_is_the_longest(backoff: Backoff) -> None:
    assert backoff.pause_s(100_000) == backoff.longest_s


def test_drawn_pauses_lie_below_the_pause() -> None:
    drawn = [Backoff(0.5, 60.0).drawn_s(3, random.Random(seed)) for seed in range(100)]
    assert 0.0 <= min(drawn) < 0.5 < 1.5 < max(drawn) <= 2.0


def test_what_took_longer_than_it_was_meant_to_counts_as_meant() -> None:
    budget = Budget(3.0)
    budget.spend(600.0, meant_s=2.0)
    assert (budget.left_s, budget.is_spent) == (1.0, False)
    budget.spend(0.25, meant_s=2.0)
    assert budget.left_s == 0.75
    budget.spend(1.0, meant_s=2.0)
    assert budget.is_spent


@pytest.mark.anyio
async def test_rounds_are_counted_and_end() -> None:
    assert [number async for number in Tries(AT_ONCE, most=3)] == [0, 1, 2]


@pytest.mark.anyio
async def test_what_is_worth_it_is_outlasted_and_nothing_else() -> None:
    ends: list[Exception | int] = [
        BusUnavailable("away"),
        BusUnavailable("still"),
        7,
        BusUnavailable("away"),
        ChainConflict("no"),
    ]
    heard: list[str] = []

    async def operation() -> int:
        await anyio.lowlevel.checkpoint()
        end = ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    def failed(error: BusUnavailable) -> None:
        heard.append(str(error))

    assert await outlast(operation, (BusUnavailable,), AT_ONCE, failed=failed) == 7
    with pytest.raises(ChainConflict):
        await outlast(operation, (BusUnavailable,), AT_ONCE, failed=failed)
    assert heard == ["away", "still", "away"]


@pytest.mark.anyio
@pytest.mark.parametrize(("shown_at", "found"), [(1, "record"), (LOOKS, "record"), (LOOKS + 1, None)])
async def test_a_record_is_looked_for_so_often(shown_at: int, found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.trying.LOOKED_FOR", AT_ONCE)
    looks = 0

    async def read() -> str | None:
        nonlocal looks
        looks += 1
        return "record" if looks >= shown_at else None

    assert await look(read) == found
    assert looks == min(shown_at, LOOKS)
