"""Subscriptions that survive the client which carries them."""

from collections.abc import Callable
from dataclasses import dataclass

import anyio
import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from bus.jetstream.connection import CLOSING_S

_log = structlog.get_logger()
Handler = Callable[[Msg], None]
"""Called in order of arrival; it must not raise."""


@dataclass(eq=False)
class Feed:
    """A subscription of ours, which survives the client that carries it."""

    subject: str
    handler: Handler
    carried: Subscription | None = None
    refused: bool = False
    """The server does not let this key listen here."""


async def carry(client: Client, feed: Feed) -> None:
    """Has a client carry a subscription; one that is closed by now carries none, and the next one takes it up."""

    async def handle(message: Msg) -> None:
        feed.handler(message)

    try:
        feed.carried = await client.subscribe(feed.subject, cb=handle)
    except nats.errors.ConnectionClosedError:
        feed.carried = None


async def forget(feed: Feed) -> None:
    """Ends a subscription at once; what is still on its way is dropped."""
    carried, feed.carried = feed.carried, None
    try:
        if carried is not None:
            await carried.unsubscribe()
    except (OSError, nats.errors.Error) as error:
        _log.debug("unsubscribe_failed", subject=feed.subject, reason=str(error))


async def unsubscribe(client: Client, feed: Feed, *, is_up: bool) -> None:
    """Ends a subscription; what the server had sent before still reaches the handler."""
    carried, feed.carried = feed.carried, None
    if carried is None:
        return
    with anyio.move_on_after(CLOSING_S, shield=True):
        try:
            if is_up:
                # The ping with which `drain` finds out that nothing more can come overtakes its own UNSUB: what the server
                # sent in between would be dropped. So the server is told before, and `drain` tells it again.
                await client._send_unsubscribe(carried._id)
                await client.flush()
                await carried.drain()  # type: ignore[no-untyped-call]
            else:
                await carried.unsubscribe()
        except (OSError, nats.errors.Error) as error:
            _log.debug("unsubscribe_failed", subject=feed.subject, reason=str(error))
