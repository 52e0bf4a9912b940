"""How long an episode waits for a provider's session, by a clock that only pauses put forward."""

import math
import time
from types import SimpleNamespace

import anyio.lowlevel
import pytest

from browser_workers.providers import leases as leases_module
from browser_workers.providers.leases import Leases, Owner
from browser_workers.providers.provider import AccountFull, Bill, Label, OutcomeUnknown, Place, Provided
from schemas.errors import BrowserLost, ConfigurationError, MillraceError

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(leases_module, "time", SimpleNamespace(monotonic=lambda: self.now, time=time.time))
        monkeypatch.setattr(anyio, "sleep", self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds
        await anyio.lowlevel.checkpoint()


class Busy:
    """Has a session from a time on, and says when to ask again as `failure` does."""

    lease_s = 0.0

    def __init__(self, clock: Clock, failure: MillraceError, *, room_at: float) -> None:
        self._clock, self._failure, self.room_at = clock, failure, room_at
        self.asked_at: list[float] = []

    async def create(self, label: Label) -> Provided:
        self.asked_at.append(self._clock.now)
        if self._clock.now < self.room_at:
            raise self._failure
        return Provided("s", Place(), label)

    async def keep_alive(self, session: Provided) -> None: ...

    async def end(self, session_id: str, *, was_lost: bool = False) -> Bill:
        return Bill()

    async def running(self, run: str) -> tuple[()]:
        return ()

    async def close(self) -> None: ...


FAILURES = {
    "asks for an hour": AccountFull("full", again_after_s=3600.0),
    "asks for ever": AccountFull("full", again_after_s=float("inf")),
    "says nothing": OutcomeUnknown("no answer"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_a_session_that_is_there_when_the_patience_ends_is_had(
    monkeypatch: pytest.MonkeyPatch, failure: BrowserLost
) -> None:
    provider = Busy(clock := Clock(monkeypatch), failure, room_at=60.0)
    async with Leases(provider, Owner("r", "w"), wait_s=60.0) as leases, leases.lease("e"):
        assert clock.now == pytest.approx(60.0), "no pause goes beyond the patience"


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_who_asks_in_vain_until_the_patience_ends_gives_up(
    monkeypatch: pytest.MonkeyPatch, failure: BrowserLost
) -> None:
    provider = Busy(Clock(monkeypatch), failure, room_at=61.0)
    async with Leases(provider, Owner("r", "w"), wait_s=60.0) as leases:
        with pytest.raises(type(failure)):
            async with leases.lease("e"):
                pass
    assert provider.asked_at[-1] == pytest.approx(60.0)


async def test_a_shorter_pause_is_as_long_as_the_provider_says(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Busy(Clock(monkeypatch), AccountFull("full", again_after_s=20.0), room_at=20.0)
    async with Leases(provider, Owner("r", "w"), wait_s=60.0) as leases, leases.lease("e"):
        assert len(provider.asked_at) == 2
        assert 20.0 <= provider.asked_at[-1] < 21.0


async def test_what_is_refused_behind_a_session_is_asked_for_again_until_somebody_mends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = Busy(clock := Clock(monkeypatch), ConfigurationError("write another key"), room_at=0.0)
    async with Leases(provider, Owner("r", "w"), wait_s=60.0) as leases:
        async with leases.lease("first"):
            provider.room_at = 30.0
        async with leases.lease("second"):
            assert 30.0 <= clock.now < 60.0
        provider.room_at = math.inf
        with pytest.raises(BrowserLost, match="write another key"):
            async with leases.lease("third"):
                pass
