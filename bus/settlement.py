"""Acknowledgement as policy, in one place: what becomes of a delivery is read from how its handling ended.

    handled                     -> ack, confirmed by the server
    Disposition.RETRY           -> delivered again after a growing delay
    Disposition.REJECT          -> dead letter, then terminated
    Disposition.LEAVE           -> nothing: somebody else owns the work, and it comes again if he dies
    Disposition.FATAL, cancel   -> handed back at once, and the error goes on

While the handler runs, the server is told every third of the ack wait that the work is in progress.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio
import structlog

from bus.companions import companions
from bus.ports import Bus, Delivery
from bus.retry import REDELIVERED
from schemas.errors import BusError, Disposition, MillraceError
from schemas.ids import WorkerId
from schemas.messages import DeadLetter

_log = structlog.get_logger()
_CLOSING_S = 2.0
_GRAVEST_FIRST = (Disposition.FATAL, Disposition.REJECT, Disposition.RETRY, Disposition.LEAVE)


def retry_delay_s(num_delivered: int) -> float:
    return REDELIVERED.pause_s(num_delivered)


@asynccontextmanager
async def settle(bus: Bus, delivery: Delivery, worker: WorkerId) -> AsyncIterator[None]:
    """Runs the body as the handling of `delivery`. Errors that are not fatal end here, logged once.

    Raises:
        MillraceError: with `Disposition.FATAL`, after the delivery was handed back.
    """
    failure: MillraceError | None = None
    try:
        async with companions(partial(_keep_alive, delivery)):
            try:
                yield
            except* MillraceError as errors:
                failure = _worst(errors)
    except BaseException:
        await hand_back(delivery)
        raise
    if failure is not None and failure.disposition is Disposition.FATAL:
        await hand_back(delivery)
        raise failure
    try:
        await _conclude(bus, delivery, worker, failure)
    except BusError as error:
        # What was handled stays handled: the message comes again after its ack wait, and is then found to be done.
        _log.warning("settlement_unconfirmed", stream=delivery.stream, seq=delivery.seq, reason=str(error))


async def attempt(handle: Callable[[], Awaitable[None]], *, num_tries: int) -> None:
    """Handles an input that nobody delivers again, with the same policy: what is worth retrying is tried `num_tries` times.

    Whoever sent the input must have a fallback. Errors that are not fatal end here, logged.

    Raises:
        MillraceError: with `Disposition.FATAL`.
    """
    for num_tried in range(1, num_tries + 1):
        try:
            await handle()
        except MillraceError as error:
            if error.disposition is Disposition.FATAL:
                raise
            if error.disposition is not Disposition.RETRY or num_tried == num_tries:
                _log.warning("input_given_up", reason=str(error), tried=num_tried)
                return
            await anyio.sleep(retry_delay_s(num_tried))
        else:
            return


async def hand_back(delivery: Delivery) -> None:
    """Gives a delivery that was not begun to other workers, at once."""
    with anyio.move_on_after(_CLOSING_S, shield=True):
        await delivery.nak()


async def _keep_alive(delivery: Delivery) -> None:
    while True:
        await anyio.sleep(delivery.queue.ack_wait_s / 3)
        try:
            await delivery.in_progress()
        except BusError as error:
            _log.warning("in_progress_unsent", stream=delivery.stream, seq=delivery.seq, error=str(error))


def _worst(errors: BaseExceptionGroup[MillraceError]) -> MillraceError:
    """The error that decides: the first of the gravest disposition (a body may run tasks of its own)."""
    leaves: list[MillraceError] = []
    for error in errors.exceptions:
        leaves += [_worst(error)] if isinstance(error, BaseExceptionGroup) else [error]
    return min(leaves, key=lambda error: _GRAVEST_FIRST.index(error.disposition))


async def _conclude(bus: Bus, delivery: Delivery, worker: WorkerId, failure: MillraceError | None) -> None:
    if failure is None:
        await delivery.ack()
        return
    log = _log.bind(stream=delivery.stream, seq=delivery.seq, worker=worker, reason=str(failure))
    match failure.disposition:
        case Disposition.LEAVE:
            log.info("work_left_to_its_owner")
        case Disposition.REJECT:
            log.error("work_rejected")
            await reject(bus, delivery, worker, str(failure))
        case _:
            delay_s = retry_delay_s(delivery.num_delivered)
            log.warning("work_retried", delivered=delivery.num_delivered, delay_s=delay_s)
            await delivery.nak(delay_s)


async def reject(bus: Bus, delivery: Delivery, worker: WorkerId, reason: str) -> None:
    """Copies a delivery to the dead letters, then ends it."""
    letter = DeadLetter(
        stream=delivery.stream,
        consumer=delivery.consumer,
        seq=delivery.seq,
        subject=delivery.subject,
        reason=reason,
        data=delivery.data,
        worker=worker,
    )
    await bus.dead_letter(letter)
    await delivery.term(reason)
