"""The bulkhead: an error that nobody foresaw ends the handling of one item, and nothing else sinks with it.

It is logged with its traceback, counted in the worker's heartbeat (`unexpected`) and told on ADVISORIES, where the tries at
an item are numbered: they are counted over all workers, and neither outages nor stops nor kills are among them. At the third
the item is given up. A worker at which several items in a row meet the same error ends, without a further try being counted,
and whoever keeps it running starts it anew.

What is met is any `Exception` that is no `MillraceError`; these say themselves what becomes of their input. MemoryError is
one: it is mostly the item that asks for too much, what it was given is free again, and a process that has no memory left
meets it again and again. Cancellation, SystemExit and KeyboardInterrupt are somebody's will and pass.
"""

import time
from collections import Counter

import structlog

from bus.context import WorkerContext
from bus.fault import MOST_TRIES, Fault, Streak
from bus.ports import Expect
from bus.presence import Status
from schemas import messages
from schemas.errors import BusError, ChainConflict, Hopeless, NotPermitted, Unforeseen, WorkerFailing

_log = structlog.get_logger()


def note(error: Exception, item: str, status: Status) -> Fault:
    """Logs and counts an error: all that can be done where there is no bus to tell it on."""
    fault = Fault.of(error)
    status.num_unexpected += 1
    _log.error("unexpected_error", item=item, worker=status.worker, error=fault.error, place=fault.place, exc_info=error)
    return fault


class Bulkhead:
    """One a worker, for all its slots."""

    def __init__(self, context: WorkerContext, *, scope: str = "") -> None:
        """`scope`: a token that tells the items of workers of one role apart which do different work with them."""
        self._bus = context.bus
        self._subjects = context.subjects
        self._status = context.status
        self._scope = f"{scope}/" if scope else ""
        self._streak = Streak()
        self._untold = Counter[str]()

    async def met(self, error: Exception, item: str) -> Unforeseen:
        """What becomes of an item at which an error was met, as the error that stands for it from now on.

        Raises:
            BusError: it cannot be told: this was no try.
        """
        fault = self.note(error, item)
        if self._streak.failed(fault, item):
            failing = WorkerFailing(f"one item after the other meets {fault}: this worker ends")
            failing.__cause__ = error
            return failing
        number = await self.tell(fault, item)
        if number < MOST_TRIES:
            return Unforeseen(f"unexpected {fault}", num_tried=number)
        return Hopeless(f"unexpected at {number} tries: {fault}")

    async def left_out(self, error: Exception, item: str) -> Fault:
        """For a role that reads records in order: it leaves the item out, since to end would only have it met again."""
        fault = self.note(error, item)
        try:
            await self.tell(fault, item)
        except BusError as failure:
            _log.warning("unexpected_error_untold", item=item, reason=str(failure))
        return fault

    def note(self, error: Exception, item: str) -> Fault:
        """Logs and counts an error, here alone."""
        return note(error, item, self._status)

    def succeeded(self, item: str) -> None:
        self._streak.succeeded(item)

    async def tell(self, fault: Fault, item: str) -> int:
        """Which try it was: the first number under which nothing stands, which two workers never both find.

        Raises:
            BusError: it cannot be told.
        """
        for number in range(1, MOST_TRIES + 1):
            subject = self._subjects.fault(self._status.role, self._scope + item, number)
            said = messages.Fault(
                role=self._status.role,
                worker=self._status.worker,
                item=item,
                number=number,
                error=fault.error,
                place=fault.place,
                at=time.time(),
            )
            try:
                await self._bus.append(self._subjects.advisories, subject, said, expect=Expect(subject, 0))
            except ChainConflict:
                continue
            except NotPermitted:
                # A server whose permissions are older: the tries of this worker are known at least.
                self._untold[item] += 1
                return self._untold[item]
            return number
        return MOST_TRIES
