"""Acknowledgement as policy, in one place: what becomes of a delivery is read from how its handling ended.

    handled                     -> ack, confirmed by the server
    Disposition.RETRY           -> delivered again after a growing delay
    Disposition.REJECT          -> dead letter, then terminated
    Disposition.DROP            -> ack: somebody else did the work
    Disposition.FATAL, cancel   -> handed back at once, and the error goes on

While the handler runs, the server is told every third of the ack wait that the work is in progress.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import structlog

from bus.ports import Bus, Delivery
from schemas.errors import BusError, Disposition, MillraceError
from schemas.ids import WorkerId
from schemas.messages import DeadLetter

_log = structlog.get_logger()
_RETRY_DELAYS_S = (0.2, 1.0, 5.0, 15.0)
_CLOSING_S = 2.0


def retry_delay_s(num_delivered: int) -> float:
    return _RETRY_DELAYS_S[min(num_delivered, len(_RETRY_DELAYS_S)) - 1]


@asynccontextmanager
async def settle(bus: Bus, delivery: Delivery, worker: WorkerId) -> AsyncIterator[None]:
    """Runs the body as the handling of `delivery`. Errors that are not fatal end here, logged once.

    Raises:
        MillraceError: with `Disposition.FATAL`, after the delivery was handed back.
    """
    failure: MillraceError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_keep_alive, delivery)
        try:
            yield
        except MillraceError as error:
            failure = error
        except BaseException:
            await _hand_back(delivery)
            raise
        finally:
            group.cancel_scope.cancel()
    if failure is None:
        await delivery.ack()
    else:
        await _settle_failure(bus, delivery, worker, failure)


async def _hand_back(delivery: Delivery) -> None:
    with anyio.move_on_after(_CLOSING_S, shield=True):
        await delivery.nak()


async def _keep_alive(delivery: Delivery) -> None:
    while True:
        await anyio.sleep(delivery.queue.ack_wait_s / 3)
        try:
            await delivery.in_progress()
        except BusError as error:
            _log.warning("in_progress_unsent", stream=delivery.stream, seq=delivery.seq, error=str(error))


async def _settle_failure(bus: Bus, delivery: Delivery, worker: WorkerId, error: MillraceError) -> None:
    log = _log.bind(stream=delivery.stream, seq=delivery.seq, worker=worker, reason=str(error))
    match error.disposition:
        case Disposition.DROP:
            log.info("work_already_done")
            await delivery.ack()
        case Disposition.RETRY:
            delay_s = retry_delay_s(delivery.num_delivered)
            log.warning("work_retried", delivered=delivery.num_delivered, delay_s=delay_s)
            await delivery.nak(delay_s)
        case Disposition.REJECT:
            log.error("work_rejected")
            await reject(bus, delivery, worker, str(error))
        case Disposition.FATAL:
            await _hand_back(delivery)
            raise error


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
