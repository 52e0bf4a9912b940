"""A lease: one holder at a time, by compare-and-set on a keyed record. No clock is compared with another machine's.

The holder writes its claim again every third of the time to live. Whoever waits takes over when the claim has not changed
for the whole time to live, measured from when it was seen; the holder stops counting on it after the same time, measured from
before the write, which is earlier. So two never believe they hold it.
"""

import itertools
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
import msgspec
import structlog

from bus.background import background
from bus.jetstream.append import Appender
from bus.jetstream.link import Link
from bus.jetstream.read import Reader
from bus.ports import Expect, Lease, StoredBytes
from bus.retry import Backoff
from bus.trying import outlast
from schemas.errors import BusError, BusUnavailable, ChainConflict, StreamFull

_log = structlog.get_logger()
_CLOSING_S = 1.0
_AGAIN = Backoff(0.1, 0.5)
_RENEWALS = 3.0
"""In a time to live."""


class Claim(msgspec.Struct, frozen=True):
    """What the keyed record says."""

    holder: str
    ttl_s: float
    renewal: int
    released: bool = False


@dataclass
class LeaseWatch:
    """Decides when a waiting process may take a lease, from what it has seen and its own clock (monotonic seconds)."""

    seq: int = -1
    since: float = 0.0

    def patience_s(self, seq: int, claim: Claim | None, now: float) -> float:
        """Seconds to wait before the lease is free; 0: it is free now."""
        if claim is None or claim.released:
            return 0.0
        if seq != self.seq:
            self.seq, self.since = seq, now
        return max(self.since + claim.ttl_s - now, 0.0)


class HeldLease:
    """Satisfies `bus.ports.Lease`."""

    def __init__(self) -> None:
        self._lost = anyio.Event()

    async def wait_lost(self) -> None:
        await self._lost.wait()

    def lose(self, reason: str) -> None:
        _log.warning("lease_lost", reason=reason)
        self._lost.set()


@dataclass
class Leasing:
    """One process's dealings with one lease."""

    link: Link
    reader: Reader
    appender: Appender
    stream: str
    subject: str
    ttl_s: float

    def __post_init__(self) -> None:
        self._holder = secrets.token_hex(8)
        self._renewals = itertools.count()
        self._confirmed_at = 0.0

    async def acquire(self) -> int:
        """Waits until the lease is ours; returns the sequence of our claim."""
        watch = LeaseWatch()
        changed = anyio.Event()
        # A stream's subjects reach plain subscribers too: a release is heard at once.
        feed = await self.link.subscribe(self.subject, lambda _: changed.set())
        try:
            while True:
                changed = anyio.Event()
                newest = await self.reader.newest(self.stream, self.subject)
                seq = newest.seq if newest else 0
                wait_s = watch.patience_s(seq, _claim(newest), time.monotonic())
                if wait_s > 0:
                    with anyio.move_on_after(wait_s):
                        await changed.wait()
                    continue
                try:
                    return await self._write(seq, self._claim())
                except ChainConflict:
                    # Somebody was faster, or a lagging replica has shown us an old claim.
                    await anyio.sleep(_AGAIN.first_s)
                except StreamFull as error:
                    _log.warning("lease_awaits_room", subject=self.subject, reason=str(error))
                    await anyio.sleep(self.ttl_s / _RENEWALS)
        finally:
            await self.link.unsubscribe(feed)

    async def hold(self, lease: HeldLease, seq: int) -> None:
        """Renews until the lease is lost or this is cancelled."""
        while True:
            await anyio.sleep(self.ttl_s / _RENEWALS)
            try:
                with anyio.fail_after(max(self._confirmed_at + self.ttl_s - time.monotonic(), 0.0)):
                    seq = await self._renew(seq)
            except (TimeoutError, BusError) as error:
                lease.lose(str(error) or "the server was not heard in time")
                return

    async def _renew(self, seq: int) -> int:
        """Raises `BusError` when the lease is not ours any more; tries on while the server is away or has no room.

        It is one claim all the while: it may be stored since the first try, whose answer was lost.
        """

        def failed(error: BusError) -> None:
            _log.info("lease_not_renewed_yet", subject=self.subject, reason=str(error))

        claim = self._claim()
        return await outlast(partial(self._write, seq, claim), (StreamFull, BusUnavailable), _AGAIN, failed=failed)

    async def release(self) -> None:
        """Lets the next one in at once; does nothing when somebody else holds it."""
        newest = await self.reader.newest(self.stream, self.subject)
        claim = _claim(newest)
        if newest is None or claim is None or claim.holder != self._holder:
            return
        try:
            await self._write(newest.seq, self._claim(released=True))
        except ChainConflict:
            return

    def _claim(self, *, released: bool = False) -> "_Drawn":
        return _Drawn(Claim(self._holder, self.ttl_s, next(self._renewals), released), time.monotonic())

    async def _write(self, after_seq: int, drawn: "_Drawn") -> int:
        data = msgspec.json.encode(drawn.claim)
        seq = await self.appender.append_bytes(self.stream, self.subject, data, Expect(self.subject, after_seq))
        self._confirmed_at = drawn.at
        return seq


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A claim on its way, and when that began: whoever sees it stored may have seen it since then."""

    claim: Claim
    at: float


def _claim(stored: StoredBytes | None) -> Claim | None:
    """None: there is none, or none that can be read, which nobody holds."""
    try:
        return msgspec.json.decode(stored.data, type=Claim) if stored else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


@asynccontextmanager
async def hold_lease(leasing: Leasing) -> AsyncIterator[Lease]:
    """See `bus.ports.Bus.lease`."""
    lease = HeldLease()
    seq = await leasing.acquire()
    try:
        async with background(partial(leasing.hold, lease, seq)):
            yield lease
    finally:
        with anyio.move_on_after(_CLOSING_S, shield=True):
            try:
                await leasing.release()
            except BusError as error:
                _log.info("lease_unreleased", subject=leasing.subject, reason=str(error))
