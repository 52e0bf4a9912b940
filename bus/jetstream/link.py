"""One connection to a NATS server: requests with replies, and subscriptions. It outlives restarts of the server.

The client library reconnects by itself. This module adds what it leaves out: a request in flight fails the moment the
connection is lost (its outcome is then unknown, `NoAnswer`), nothing is sent into the void while there is no connection, and a
client that gave up for good is replaced, subscriptions included.

What the server does not permit it says once, aside, and never to the request that was refused: here that request fails at
once with `NotPermitted`, and so does every later one on the same subject.
"""

import re
import secrets
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.lowlevel
import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport

from bus.address import ServerAddress
from bus.background import background
from bus.jetstream.calls import Calls, NoAnswer, NoResponder, status_of
from bus.jetstream.nearest import nearest_first
from schemas.errors import BusError, BusUnavailable, ConfigurationError, MessageTooLarge, NotPermitted

_log = structlog.get_logger()
_CONNECT_S = 5.0
_RECONNECT_S = 0.25
_LOOK_S = 1.0
_CLOSING_S = 2.0
_PENDING_BYTES = 64 * 1024 * 1024
_PING_S = 5
_OUTSTANDING_PINGS = 2

_REFUSED = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"', re.IGNORECASE)
_KEY_REFUSED = "authorization violation"
"""The server has no codes for these two, and the client library hands its words on, some of them in lower case."""

Handler = Callable[[Msg], None]


@dataclass(eq=False)
class Feed:
    """A subscription of ours, which survives the client that carries it."""

    subject: str
    handler: Handler
    carried: Subscription | None = None
    refused: NotPermitted | None = None
    """Set when the server does not let this key listen here."""


def _headers_size(headers: dict[str, str] | None) -> int:
    if not headers:
        return 0
    return len("NATS/1.0\r\n\r\n") + sum(len(f"{key}: {value}\r\n".encode()) for key, value in headers.items())


class Link:
    """Use `open_link`. Handlers are plain functions called in order of arrival; they must not raise."""

    def __init__(self, address: ServerAddress, name: str) -> None:
        self._address = address
        self._name = name
        self._inbox = f"{address.inbox_prefix}.{secrets.token_hex(8)}"
        self._refused: dict[str, NotPermitted] = {}
        self._key_refused = False
        self._calls = Calls()
        self._feeds: set[Feed] = set()
        self._replies = Feed(f"{self._inbox}.*", self._calls.answered)
        self._client = Client()
        self._up = anyio.Event()
        self._closed = anyio.Event()
        self._closing = False
        self._last_error = ""
        self.on_lost: set[Callable[[], None]] = set()

    # connection -------------------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Connects, or raises after five seconds.

        Raises:
            BusUnavailable: no server answers.
            NotPermitted: it refuses our key.
            ConfigurationError: the file with certificates cannot be read.
        """
        client = Client()
        encryption = _encryption(self._address)
        self._key_refused = False
        credentials = str(self._address.credentials_file) if self._address.credentials_file else None
        servers = await nearest_first(self._address.urls)
        try:
            with anyio.fail_after(_CONNECT_S):
                await client.connect(
                    servers=servers,
                    dont_randomize=True,
                    name=self._name,
                    error_cb=self._note_error,
                    disconnected_cb=self._lost,
                    reconnected_cb=self._connected,
                    closed_cb=self._gave_up,
                    nkeys_seed_str=self._address.nkey_seed or None,
                    user_credentials=credentials,
                    tls=encryption,
                    inbox_prefix=self._address.inbox_prefix,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=_RECONNECT_S,  # type: ignore[arg-type]
                    connect_timeout=2,
                    ping_interval=_PING_S,
                    max_outstanding_pings=_OUTSTANDING_PINGS,
                    pending_size=_PENDING_BYTES,
                )
        except BaseException as error:
            # Whoever cancels this leaves no socket behind either.
            await self._discard(client)
            if isinstance(error, (TimeoutError, OSError, nats.errors.Error)):
                raise self._unconnected(str(error) or "no answer") from error
            raise
        if encryption is not None and not _is_encrypted(client):
            await self._discard(client)
            raise BusUnavailable(f"the NATS server at {self._address.url} offers no encryption: enable TLS there")
        self._client = client
        self._closed = anyio.Event()
        for feed in (self._replies, *self._feeds):
            await self._carry(feed)
        await self._connected()

    def _unconnected(self, reason: str) -> BusError:
        if self._key_refused:
            return NotPermitted(
                f"the NATS server at {self._address.url} refuses the key of {self._address.key_name}: "
                "copy the key of this run and role again from the server's keys folder"
            )
        return BusUnavailable(
            f"no NATS server answers at {self._address.url} ({self._last_error or reason}): "
            "start the server role first, or correct bus_config.url and bus_config.ca_file"
        )

    async def keep(self) -> None:
        """Replaces a client that closed itself (a server refused its credentials for a moment, say). Runs until cancelled."""
        while True:
            while not self._closed.is_set():
                with anyio.move_on_after(_LOOK_S):
                    await self._closed.wait()
                self._look_after(self._client)
            _log.warning("bus_client_replaced", client=self._name, reason=self._last_error)
            await self._discard(self._client)
            try:
                await self.connect()
            except BusError:
                await anyio.sleep(_RECONNECT_S)

    def _look_after(self, client: Client) -> None:
        """Sees to it that a client which lost its connection gets another.

        The library first waits until what it had not sent yet has gone out, over a connection that it knows to be dead: until
        the kernel gives up, after a quarter of an hour. And an error that it does not expect ends its trying, without a word.
        """
        if client.is_reconnecting and self.is_up:
            transport = client._transport
            if isinstance(transport, TcpTransport) and transport._io_writer is not None:
                transport._io_writer.transport.abort()
        elif not client.is_connected and (trying := client._reconnection_task) is not None and trying.done():
            self._closed.set()

    async def close(self) -> None:
        self._closing = True
        await self._discard(self._client)

    async def _discard(self, client: Client) -> None:
        with anyio.move_on_after(_CLOSING_S, shield=True):
            try:
                if client.is_connected:
                    await client.flush(timeout=1)
                await client.close()
            except (OSError, nats.errors.Error) as error:
                _log.debug("bus_close_failed", client=self._name, reason=str(error))

    async def _note_error(self, error: Exception) -> None:
        # The library's read loop dies silently when this raises.
        self._last_error = str(error) or type(error).__name__
        # A server that refuses a key hangs up at once: that may overtake its word, and takes back none said before.
        if not isinstance(error, ConnectionResetError):
            self._key_refused = _KEY_REFUSED in self._last_error.lower()
        refusal = _REFUSED.search(self._last_error)
        if refusal is not None:
            self._refuse(refusal[1].lower(), refusal[2].lower())
        elif not self._closing:
            _log.info("bus_client_error", client=self._name, reason=self._last_error)

    def _refuse(self, verb: str, subject: str) -> None:
        """`subject` in lower case: two subjects that differ in case alone are taken for one."""
        error = NotPermitted(f"the key of {self._address.key_name} is not permitted {verb} on {subject}")
        _log.error("not_permitted", client=self._name, key=self._address.key_name, verb=verb, subject=subject)
        if verb == "subscription":
            for feed in (self._replies, *self._feeds):
                if feed.subject.lower() == subject:
                    feed.refused = error
        else:
            self._refused[subject] = error
        self._calls.fail(error, subject=None if self._replies.refused is not None else subject)

    async def _lost(self) -> None:
        if self._up.is_set():
            self._up = anyio.Event()
        self._calls.fail(NoAnswer("the connection to the server was lost"))
        for callback in tuple(self.on_lost):
            callback()

    async def _gave_up(self) -> None:
        await self._lost()
        if not self._closing:
            self._closed.set()

    async def _connected(self) -> None:
        if self._address.is_encrypted and not _is_encrypted(self._client):
            # Whoever answers now is not who answered before: `keep` looks for the right one.
            self._last_error = "the server offers no encryption any more"
            self._closed.set()
            return
        self._refused.clear()
        self._replies.refused = None  # the server may have been given another configuration
        self._up.set()

    @property
    def is_up(self) -> bool:
        return self._up.is_set()

    @property
    def has_jetstream(self) -> bool:
        """Whether the server at the other end says that it has it, for some account."""
        return bool(self._client._server_info.get("jetstream"))

    async def wait_up(self) -> None:
        await self._up.wait()

    async def is_up_within(self, timeout_s: float) -> bool:
        """Waits for the connection, no longer than so many seconds."""
        with anyio.move_on_after(timeout_s):
            await self._up.wait()
        return self.is_up

    async def round_trip(self) -> None:
        """Returns once the server has seen everything sent before, and we have read everything it had sent."""
        if not self.is_up:
            return
        try:
            with anyio.move_on_after(_CLOSING_S):
                # The library's ping overtakes what waits to be sent; the second one comes behind it.
                await self._client.flush(timeout=1)
                await self._client.flush(timeout=1)
        except (OSError, nats.errors.Error) as error:
            _log.debug("round_trip_failed", client=self._name, reason=str(error))

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
        if self._replies.refused is not None:
            raise self._replies.refused
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
        if self._refused and (refusal := self._refused.get(subject.lower())) is not None:
            raise refusal
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
        await self._carry(feed)
        return feed

    async def _carry(self, feed: Feed) -> None:
        async def handle(message: Msg) -> None:
            feed.handler(message)

        try:
            feed.carried = await self._client.subscribe(feed.subject, cb=handle)
        except nats.errors.ConnectionClosedError:
            feed.carried = None  # `connect` takes it up again

    async def forget(self, feed: Feed) -> None:
        """Ends a subscription at once; what is still on its way is dropped."""
        self._feeds.discard(feed)
        carried, feed.carried = feed.carried, None
        try:
            if carried is not None:
                await carried.unsubscribe()
        except (OSError, nats.errors.Error) as error:
            _log.debug("unsubscribe_failed", subject=feed.subject, reason=str(error))

    async def unsubscribe(self, feed: Feed) -> None:
        """Ends a subscription; what the server had sent before still reaches the handler."""
        self._feeds.discard(feed)
        carried, feed.carried = feed.carried, None
        if carried is None:
            return
        with anyio.move_on_after(_CLOSING_S, shield=True):
            try:
                if self.is_up:
                    # The ping with which `drain` finds out that nothing more can come overtakes its own UNSUB: what the server
                    # sent in between would be dropped. So the server is told before, and `drain` tells it again.
                    await self._client._send_unsubscribe(carried._id)
                    await self._client.flush()
                    await carried.drain()  # type: ignore[no-untyped-call]
                else:
                    await carried.unsubscribe()
            except (OSError, nats.errors.Error) as error:
                _log.debug("unsubscribe_failed", subject=feed.subject, reason=str(error))


def _is_encrypted(client: Client) -> bool:
    """The library upgrades when the server says so, which it says before it is known to be the right one."""
    return bool(client._server_info.get("tls_required"))


def _encryption(address: ServerAddress) -> ssl.SSLContext | None:
    if not address.is_encrypted:
        return None
    try:
        return ssl.create_default_context(cafile=address.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the certificates in {address.ca_file} cannot be read ({error.strerror or error}): copy ca.pem from the folder "
            "that millrace cluster wrote, and name it in bus_config.ca_file"
        ) from error


@asynccontextmanager
async def open_link(address: ServerAddress, name: str) -> AsyncIterator[Link]:
    link = Link(address, name)
    await link.connect()
    try:
        async with background(link.keep):
            yield link
    finally:
        await link.close()
