"""Turns at sites: what the workers of a run ask of a site together stays below its limit, without anybody who hands turns out.

A limit of n is n slots, a subject each. A slot is taken by writing a record where there is none, which the server grants to
one, and is free again when that record has aged out, a minute later and by the server's clock alone. So no slot is taken
twice within a minute, and n slots are taken at most n times in any minute, whichever workers there are: nothing has to be
counted, no clocks compared, no shares made anew when a worker comes or goes. Shares by heartbeats would leave unused what an
idle worker has, and a list of turns in one record would have all workers write over each other.

What is under way at once is bounded in the same way, by slots that their holder renews and gives back. One that dies holds
its slot for a minute; one that was cut off for so long has lost it.
"""

import random
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import anyio
import msgspec
import structlog

from bus.background import background
from bus.context import WorkerContext
from bus.ports import Expect
from bus.retry import Backoff
from schemas.errors import BusError, BusUnavailable, ChainConflict, StreamFull
from schemas.messages import SiteTurn
from schemas.site_limit import SiteLimit

_RENEWED_S = 20.0
_OWN_S = 45.0
"""Seconds for which a record stands for sure after it was written, unless its writer removes it: below the stream's age."""
_AGAIN = Backoff(0.1, 2.0)
_GIVING_BACK_S = 2.0
_MOST_TRIED = 4
"""Slots, before it is looked again which are free."""
_log = structlog.get_logger()


class NoTurn(Exception):
    """None could be had in time."""


@dataclass(slots=True)
class _Slot:
    subject: str
    turn: SiteTurn
    """Is written next: the same until it is known to be stored, which it may be though nobody said so."""
    seq: int = 0
    """Of its record; 0: there is none."""
    written_at: float = 0.0
    """Monotonic seconds, before the record was first sent."""
    sent_at: float | None = None
    """The same of `turn`, once it was."""


@dataclass(slots=True)
class Turn:
    """One action's, from when it was had."""

    flight: _Slot | None = None
    minute: _Slot | None = None
    is_used: bool = True
    """False: nothing was asked of the site after all, and it counts for nothing."""


class Turns:
    """Of one worker."""

    def __init__(
        self,
        context: WorkerContext,
        *,
        patience_s: float,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """`patience_s`: how long an action waits for its turn."""
        self._clock, self._sleep = clock, sleep
        self._bus, self._subjects, self._status = context.bus, context.subjects, context.status
        self._patience_s = patience_s
        self._rng = rng or random.Random()  # noqa: S311 - who comes first is no secret
        self._waiting: Counter[str] = Counter()
        """Actions, by site."""
        self._note = ""

    async def wait(self, site: str, egress: str, limit: SiteLimit) -> Turn:
        """A turn, which has to go `under_way`.

        Raises:
            NoTurn: none was free in time.
            BusError: the bus could not be asked.
        """
        until = self._clock() + self._patience_s
        while True:
            # In this order: a slot of a minute that waits for the other one would be used later than it is reckoned from.
            flight = await self._slot("flight", site, egress, limit.in_flight, until)
            try:
                async with self._renewed(flight):
                    minute = await self._slot("minute", site, egress, limit.per_minute, until)
            except BaseException:
                await self._give_back(flight)
                raise
            if flight is None or self._is_own(flight):
                return Turn(flight, minute)
            await self._give_back(minute)

    @asynccontextmanager
    async def under_way(self, turn: Turn) -> AsyncIterator[Turn]:
        """Its body carries the action out."""
        try:
            async with self._renewed(turn.flight):
                yield turn
        finally:
            await self._give_back(turn.flight)
            if not turn.is_used:
                await self._give_back(turn.minute)

    # slots ------------------------------------------------------------------------------------------------------------

    async def _slot(self, kind: str, site: str, egress: str, most: int, until: float) -> _Slot | None:
        """None: there is no limit."""
        if not most:
            return None
        num_tried = 0
        with self._shown(site):
            while True:
                try:
                    if (slot := await self._free_slot(kind, site, egress, most)) is not None:
                        return slot
                except (BusUnavailable, StreamFull):
                    if self._clock() >= until:
                        raise
                num_tried += 1
                left_s = until - self._clock()
                if left_s <= 0:
                    raise NoTurn(f"it was not its turn at {site} within {self._patience_s:g} s (browser_config.site_limits)")
                await self._sleep(min(left_s, _AGAIN.drawn_s(num_tried, self._rng)))

    async def _free_slot(self, kind: str, site: str, egress: str, most: int) -> _Slot | None:
        """None: all are taken, or others were faster."""
        names = self._subjects
        taken = await self._bus.subjects(names.turns, names.turn(kind, site, egress, "*"))
        subjects = (names.turn(kind, site, egress, str(number)) for number in range(most))
        free = [subject for subject in subjects if subject not in taken]
        turn = SiteTurn(site=site, egress=egress, worker=self._status.worker, draw=secrets.token_hex(8))
        for subject in self._rng.sample(free, min(len(free), _MOST_TRIED)):
            slot = _Slot(subject, turn)
            with suppress(ChainConflict):
                await self._write(slot)
                return slot
        return None

    async def _write(self, slot: _Slot) -> None:
        """Raises `ChainConflict` when somebody else has it by now."""
        sent_at = slot.sent_at = self._clock() if slot.sent_at is None else slot.sent_at
        expect = Expect(slot.subject, slot.seq)
        slot.seq = await self._bus.append(self._subjects.turns, slot.subject, slot.turn, expect=expect)
        slot.written_at, slot.sent_at = sent_at, None
        slot.turn = msgspec.structs.replace(slot.turn, draw=secrets.token_hex(8))

    def _renewed(self, slot: _Slot | None) -> AbstractAsyncContextManager[None]:
        """While its body runs."""
        return background(*([partial(self._renew, slot)] if slot is not None else []))

    async def _renew(self, slot: _Slot) -> None:
        while True:
            await self._sleep(max(0.0, slot.written_at + _RENEWED_S - self._clock()))
            try:
                await self._write(slot)
            except ChainConflict:
                _log.warning("turn_lost", site=slot.turn.site)
                slot.seq = 0
                return
            except BusError as error:
                _log.info("turn_not_renewed", site=slot.turn.site, reason=str(error))
                await self._sleep(_RENEWED_S)

    def _is_own(self, slot: _Slot) -> bool:
        """For sure: else there is no record, or somebody else may have it by now."""
        return slot.seq > 0 and self._clock() - slot.written_at < _OWN_S

    async def _give_back(self, slot: _Slot | None) -> None:
        """What cannot be given back ages out. Its own record alone goes, however often that is asked for."""
        if slot is None or not self._is_own(slot):
            return
        with anyio.move_on_after(_GIVING_BACK_S, shield=True), suppress(BusError):
            await self._bus.purge(self._subjects.turns, slot.subject, up_to=slot.seq)

    # figures ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _shown(self, site: str) -> Iterator[None]:
        """The worker's heartbeat says that an action waits."""
        began = self._clock()
        self._count(site, 1)
        try:
            yield
        finally:
            self._count(site, -1)
            metrics = self._status.metrics
            metrics["turn_wait_s"] = metrics.get("turn_wait_s", 0.0) + self._clock() - began

    def _count(self, site: str, change: int) -> None:
        self._waiting[site] += change
        waiting = self._waiting = +self._waiting
        self._status.metrics["awaiting_turn"] = float(waiting.total())
        said, self._note = self._note, ""
        if waiting:
            longest, _ = waiting.most_common(1)[0]
            sites = longest if len(waiting) == 1 else f"{longest} and {len(waiting) - 1} other sites"
            self._note = f"{waiting.total()} of its episodes wait for their turn at {sites}"
        if self._status.note in ("", said):
            self._status.note = self._note
