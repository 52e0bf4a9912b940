"""Requests with replies, and subscriptions, over one connection to a NATS server.

A request in flight fails the moment the connection is lost: its outcome is then unknown (`NoAnswer`). What the server does not
permit it says once, aside, and never to the request that was refused: here that request fails at once with `NotPermitted`,
and so does every later one on the same subject.
"""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import nats.errors
import structlog
from nats.aio.msg import Msg

from bus.address import ServerAddress
from bus.background import background
from bus.jetstream.calls import Calls, NoAnswer, NoResponder, status_of
from bus.jetstream.connection import Connection
from bus.jetstream.subscriptions import Feed, Handler, carry, forget, unsubscribe
from schemas.errors import MessageTooLarge, NotPermitted

_log = structlog.get_logger()
_REMEMBERED = 256
"""Refused subjects: many name an episode or a step, and there is no end of those."""


def _headers_size(headers: dict[str, str] | None) -> int:
    if not headers:
        return 0
    return len("NATS/1.0\r\n\r\n") + sum(len(f"{key}: {value}\r\n".encode()) for key, value in headers.items())


class Link(Connection):
    """Use `open_link`."""

    def __init__(self, address: ServerAddress, name: str, *, starting: bool = False) -> None:
        super().__init__(address, name, starting=starting)
        self._inbox = f"{address.inbox_prefix}.{secrets.token_hex(8)}"
        self._refused: dict[str, None] = {}
        """Subjects that the server refused last; one that is forgotten it refuses again."""
        self._calls = Calls()
        self._feeds: set[Feed] = set()
        self._replies = Feed(f"{self._inbox}.*", self._calls.answered)
        self.on_lost: set[Callable[[], None]] = set()

    # the connection ---------------------------------------------------------------------------------------------------

    async def _replaced(self) -> None:
        for feed in (self._replies, *self._feeds):
            await carry(self._client, feed)

    def _renewed(self) -> None:
        self._refused.clear()
        self._replies.refused = False  # the server may have been given another configuration

    def _cut(self) -> None:
        self._calls.fail(lambda: NoAnswer("the connection to the server was lost"))
        for callback in tuple(self.on_lost):
            callback()

    def _refuse(self, verb: str, subject: str) -> None:
        # Two subjects that differ in case alone are taken for one.
        _log.error("not_permitted", client=self._name, key=self._address.key_name, verb=verb, subject=subject)
        if verb == "subscription":
            for feed in (self._replies, *self._feeds):
                if feed.subject.lower() == subject:
                    feed.refused = True
        else:
            self._refused.pop(subject, None)
            self._refused[subject] = None
            if len(self._refused) > _REMEMBERED:
                del self._refused[next(iter(self._refused))]
        self._calls.fail(lambda: self.refusal(verb, subject), subject=None if self._replies.refused else subject)

    def refusal(self, verb: str, subject: str) -> NotPermitted:
        """What says that the server permits our key no `publish` or `subscription` there: an error raised twice would grow."""
        return NotPermitted(f"the key of {self._address.key_name} is not permitted {verb} on {subject.lower()}")

    # requests ---------------------------------------------------------------------------------------------------------

    async def request(
        self, subject: str, payload: bytes = b"", headers: dict[str, str] | None = None, *, timeout_s: float
    ) -> Msg:
        """Sends and returns the first reply.

        Raises:
            NoAnswer: the connection was lost or the time has passed; what was asked may have happened.
            NoResponder: nobody serves this subject.
            NotPermitted: the server refuses it to our key.
        """
        return (await self._exchange(subject, payload, headers, many=False, timeout_s=timeout_s))[0]

    async def request_many(self, subject: str, payload: bytes, *, timeout_s: float) -> list[Msg]:
        """Sends and returns every reply, up to and including the first that is a status. Raises as `request` does."""
        return await self._exchange(subject, payload, None, many=True, timeout_s=timeout_s)

    async def _exchange(
        self, subject: str, payload: bytes, headers: dict[str, str] | None, *, many: bool, timeout_s: float
    ) -> list[Msg]:
        if self._replies.refused:
            raise self.refusal("subscription", self._replies.subject)
        with self._calls.begun(subject, many=many) as call:
            try:
                with anyio.fail_after(timeout_s):
                    await self.publish(subject, payload, reply=f"{self._inbox}.{call.token}", headers=headers)
                    replies = await call.replies
            except TimeoutError:
                raise NoAnswer(f"no answer to {subject} within {timeout_s:.0f} s") from None
        if status_of(replies[-1]) == "503":
            raise NoResponder(f"nobody answers {subject}")
        return replies

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Sends without confirmation; waits while there is no connection.

        Raises:
            MessageTooLarge: payload and headers are larger than the server takes.
            NotPermitted: the server has refused this subject to our key before.
        """
        if not self._up.is_set():
            await self._up.wait()
        # The library does not count headers, and a server that is sent too much ends the connection.
        size = len(payload) + _headers_size(headers)
        if size > self._client.max_payload:
            raise MessageTooLarge(
                f"a message of {size} bytes for {subject} exceeds the server's limit of {self._client.max_payload}: "
                "raise bus_config.max_payload_bytes (and max_payload of a server of your own)"
            )
        if self._refused and subject.lower() in self._refused:
            raise self.refusal("publish", subject)
        try:
            await self._client.publish(subject, payload, reply=reply, headers=headers)
        except (OSError, nats.errors.Error) as error:
            raise NoAnswer(f"{subject} could not be sent ({error})") from error
        # The library swallows a cancellation that arrives while it flushes.
        await anyio.lowlevel.checkpoint_if_cancelled()

    # subscriptions ----------------------------------------------------------------------------------------------------

    def new_inbox(self) -> str:
        """A subject that nobody hears but its subscriber, not even `_replies`: the server notices when he has left."""
        return f"{self._inbox}.inbox.{self._calls.new_token()}"

    async def subscribe(self, subject: str, handler: Handler) -> Feed:
        feed = Feed(subject, handler)
        self._feeds.add(feed)
        await carry(self._client, feed)
        return feed

    async def forget(self, feed: Feed) -> None:
        """Ends a subscription at once; what is still on its way is dropped."""
        self._feeds.discard(feed)
        await forget(feed)

    async def unsubscribe(self, feed: Feed) -> None:
        """Ends a subscription; what the server had sent before still reaches the handler."""
        self._feeds.discard(feed)
        await unsubscribe(self._client, feed, is_up=self.is_up)


@asynccontextmanager
async def open_link(address: ServerAddress, name: str, *, starting: bool = False) -> AsyncIterator[Link]:
    """`starting`: the server is being started, and that nobody answers yet is no news."""
    link = Link(address, name, starting=starting)
    await link.connect()
    try:
        async with background(link.keep):
            yield link
    finally:
        await link.close()
