"""Acknowledgement as policy, in one place: what becomes of a delivery is read from how its handling ended.

    handled                     -> ack, confirmed by the server
    Disposition.RETRY           -> delivered again after a growing delay
    Disposition.REJECT          -> dead letter, then terminated
    Disposition.LEAVE           -> nothing: somebody else owns the work, and it comes again if he dies
    Disposition.FATAL, cancel   -> handed back as the worker leaves, and the error goes on
    what nobody foresaw         -> as `bus.bulkhead` says: tried again, at the third time rejected

What is rejected may be brought to an end in terms of its own (`on_reject`), as an episode by a trajectory that says why; then
it needs no dead letter. While an input is handled or settled, the server is told every third of the ack wait that the work is
in progress.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio
import structlog

from bus.background import background
from bus.bulkhead import Bulkhead
from bus.fault import LONGEST, leaves, unforeseen
from bus.ports import Bus, Delivery
from bus.retry import REDELIVERED
from bus.subjects import matches
from schemas.errors import BusError, BusUnavailable, Disposition, MillraceError, Unforeseen
from schemas.ids import WorkerId
from schemas.messages import DeadLetter
from schemas.text import valid

_log = structlog.get_logger()
_MOST_PUT_OFF = 2
"""Tries that the pause after an outage goes by: work goes on within a second of the server's return."""
_GRAVEST_FIRST = (Disposition.FATAL, Disposition.REJECT, Disposition.RETRY, Disposition.LEAVE)
OnReject = Callable[[str], Awaitable[bool]]
"""Hears why an input is not handled again, perhaps several times; True: it has brought it to an end that says so."""


def retry_delay_s(num_delivered: int) -> float:
    return REDELIVERED.pause_s(num_delivered)


@asynccontextmanager
async def settle(
    bus: Bus,
    delivery: Delivery,
    worker: WorkerId,
    *,
    bulkhead: Bulkhead | None = None,
    on_reject: OnReject | None = None,
) -> AsyncIterator[None]:
    """Runs the body as the handling of `delivery`. Errors that are not fatal end here, logged once.

    Without a `bulkhead`, as in scripts, what nobody foresaw hands the delivery back and goes on.

    Raises:
        MillraceError: with `Disposition.FATAL`, after the delivery was handed back.
    """
    contained = MillraceError if bulkhead is None else Exception
    raised: Exception | None = None
    try:
        async with background(partial(_keep_alive, delivery)):
            try:
                yield
            except* contained as errors:
                raised = errors
            try:
                failure = await _failure(raised, item_of(delivery), bulkhead)
                await _conclude(bus, delivery, worker, failure, on_reject)
            except MillraceError as error:
                if error.disposition is Disposition.FATAL:
                    raise
                # What was handled stays handled: the message comes again after its ack wait, and is then found to be done.
                _log.warning("settlement_unconfirmed", stream=delivery.stream, seq=delivery.seq, reason=str(error))
    except BaseException:
        delivery.hand_back()
        raise


async def attempt(
    handle: Callable[[], Awaitable[None]],
    *,
    num_tries: int,
    item: str = "",
    bulkhead: Bulkhead | None = None,
    on_reject: OnReject | None = None,
) -> None:
    """Handles an input that nobody delivers again, with the same policy: what is worth retrying is tried `num_tries` times.

    Whoever sent the input must have a fallback. Errors that are not fatal end here, logged.

    Args:
        item: what a `bulkhead` knows the input by.

    Raises:
        MillraceError: with `Disposition.FATAL`.
    """
    contained = MillraceError if bulkhead is None else Exception
    for num_tried in range(1, num_tries + 1):
        raised: Exception | None = None
        try:
            await handle()
        except contained as error:
            raised = error
        try:
            failure = await _failure(raised, item, bulkhead)
        except BusError as error:
            failure = error
        if failure is None:
            return
        if failure.disposition is Disposition.FATAL:
            raise failure
        if failure.disposition is not Disposition.RETRY or num_tried == num_tries:
            _log.warning("input_given_up", reason=str(failure), tried=num_tried)
            if failure.disposition is Disposition.REJECT:
                try:
                    await _ended(on_reject, valid(str(failure), LONGEST))
                except BusError as error:
                    _log.warning("settlement_unconfirmed", item=item, reason=str(error))
            return
        await anyio.sleep(retry_delay_s(num_tried))


def item_of(delivery: Delivery) -> str:
    """What tells a delivery's message from others of its queue, as in `episode/attempt/step`; its copies are the same item."""
    subject_filter = next(each for each in delivery.queue.subject_filters if matches(each, delivery.subject))
    num_fixed = next(index for index, token in enumerate(subject_filter.split(".")) if token in ("*", ">"))
    return "/".join(delivery.subject.split(".")[num_fixed:])


async def _failure(raised: Exception | None, item: str, bulkhead: Bulkhead | None) -> MillraceError | None:
    """The error that decides about an input; None: it was handled.

    Raises:
        BusError: nobody could be told of what nobody foresaw.
    """
    if raised is None:
        if bulkhead is not None:
            bulkhead.succeeded(item)
        return None
    failures = [leaf for leaf in leaves(raised) if isinstance(leaf, MillraceError)]
    surprise = unforeseen(raised)
    if surprise is not None and bulkhead is not None and not any(each.disposition is Disposition.FATAL for each in failures):
        failures.append(await bulkhead.met(surprise, item))
    return min(failures, key=lambda failure: _GRAVEST_FIRST.index(failure.disposition))


async def _keep_alive(delivery: Delivery) -> None:
    while True:
        await anyio.sleep(delivery.queue.ack_wait_s / 3)
        try:
            await delivery.in_progress()
        except BusError as error:
            _log.warning("in_progress_unsent", stream=delivery.stream, seq=delivery.seq, error=str(error))


async def _conclude(
    bus: Bus, delivery: Delivery, worker: WorkerId, failure: MillraceError | None, on_reject: OnReject | None
) -> None:
    """Raises `failure` when it is fatal."""
    if failure is None:
        await delivery.ack()
        return
    log = _log.bind(stream=delivery.stream, seq=delivery.seq, worker=worker, reason=str(failure))
    match failure.disposition:
        case Disposition.FATAL:
            raise failure
        case Disposition.LEAVE:
            log.info("work_left_to_its_owner")
        case Disposition.REJECT:
            log.error("work_rejected")
            reason = valid(str(failure), LONGEST)
            if await _ended(on_reject, reason):
                await delivery.ack()
            else:
                await reject(bus, delivery, worker, reason)
        case _:
            delay_s = retry_delay_s(_num_tried(failure, delivery))
            log.warning("work_retried", delivered=delivery.num_delivered, delay_s=delay_s)
            await delivery.nak(delay_s)


def _num_tried(failure: MillraceError, delivery: Delivery) -> int:
    """How often an input failed, as far as it may be the input's fault: kills and outages deliver it again as well."""
    if isinstance(failure, Unforeseen):
        return failure.num_tried
    if isinstance(failure, BusUnavailable):
        return min(delivery.num_delivered, _MOST_PUT_OFF)
    return delivery.num_delivered


async def _ended(on_reject: OnReject | None, reason: str) -> bool:
    try:
        return on_reject is not None and await on_reject(reason)
    except MillraceError as error:
        if error.disposition is not Disposition.REJECT:
            raise
        _log.error("rejection_failed", reason=reason, why=str(error))
        return False
    except Exception:  # noqa: BLE001 - what gives an item up must not end the next worker too: the dead letter remains
        _log.exception("rejection_failed", reason=reason)
        return False


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
