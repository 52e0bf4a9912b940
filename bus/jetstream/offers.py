"""Offers: a request to one worker, who says at once whether he takes the message. Nothing is stored."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio
import structlog
from nats.aio.msg import Msg

from bus.background import background
from bus.codec import decode_under
from bus.handoff import Handoff
from bus.jetstream.calls import NoAnswer, NoResponder
from bus.jetstream.link import Link
from bus.jetstream.retrying import RetryLimits, known
from bus.ports import Offered
from schemas.errors import MessageCorrupt
from schemas.messages import AnyMessage

_log = structlog.get_logger()
_TAKEN = b"+"
_DECLINED = b"-"
_CLOSING_S = 1.0


async def offer(link: Link, subject: str, data: bytes, *, timeout_s: float) -> Offered:
    """See `bus.ports.Bus.offer`."""
    try:
        reply = await link.request(subject, data, timeout_s=timeout_s)
    except NoAnswer:
        return Offered.SILENT
    except NoResponder:
        return Offered.ABSENT
    return Offered.TAKEN if reply.data == _TAKEN else Offered.DECLINED


@asynccontextmanager
async def offers(
    link: Link, subject_filter: str, accept: Callable[[AnyMessage], bool], limits: RetryLimits
) -> AsyncIterator[None]:
    """See `bus.ports.Bus.offers`."""
    replies = Handoff[tuple[str, bytes]]()
    open_ = True

    def consider(message: Msg) -> None:
        if message.reply:  # otherwise nobody asks
            replies.put((message.reply, _TAKEN if open_ and _accepted(message, accept) else _DECLINED))

    feed = await link.subscribe(subject_filter, consider)
    try:
        # Offers come over other connections: the server must know of us first.
        await known(link, subject_filter, limits)
        async with background(partial(_send, link, replies)):
            yield
    finally:
        # Whoever asks while we leave is told so, and does not wait for his timeout.
        open_ = False
        await link.unsubscribe(feed)
        with anyio.move_on_after(_CLOSING_S, shield=True):
            while replies.num_items:
                await _reply(link, *await anext(replies))


def _accepted(message: Msg, accept: Callable[[AnyMessage], bool]) -> bool:
    try:
        return accept(decode_under(message.subject, message.data))
    except MessageCorrupt as error:
        _log.error("message_skipped", subject=message.subject, reason=str(error))
        return False


async def _send(link: Link, replies: Handoff[tuple[str, bytes]]) -> None:
    async for subject, verdict in replies:
        await _reply(link, subject, verdict)


async def _reply(link: Link, subject: str, verdict: bytes) -> None:
    try:
        await link.publish(subject, verdict)
    except NoAnswer as error:
        # Whoever asked hears nothing and asks somebody else.
        _log.info("offer_unanswered", subject=subject, reason=str(error))
