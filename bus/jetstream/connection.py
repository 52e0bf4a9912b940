"""The connection to a NATS server: one client at a time. It outlives restarts of the server.

The client library reconnects by itself. This module adds what it leaves out: nothing is sent into the void while there is no
connection, one that is known to be dead is given up at once, and a client that gave up for good is replaced.
"""

import re
import ssl
from dataclasses import replace

import anyio
import anyio.to_thread
import nats.errors
import structlog
from nats.aio.client import Client

from bus.address import ServerAddress
from bus.address_file import read_whereabouts
from bus.jetstream.calls import NoAnswer
from bus.jetstream.client import PatientClient
from bus.jetstream.nearest import nearest_first
from bus.jetstream.transport import Transport
from bus.patience import fail_after_running
from schemas.errors import BusError, BusUnavailable, ConfigurationError, NotPermitted

_log = structlog.get_logger()
_CONNECT_S = 10.0
"""For some tries: on a machine that is full, a greeting may take longer than one of them."""
_GREETING_S, _LONGEST_GREETING_S = 2.0, 10.0
"""For one try: twice as long after each that was in vain, since a machine that is full greets late and may go on to."""
_RECONNECT_S = 0.25
_LOOK_S = 1.0
CLOSING_S = 2.0
_PENDING_BYTES = 64 * 1024 * 1024
_PING_S = 5
_OUTSTANDING_PINGS = 2

_REFUSED = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"', re.IGNORECASE)
_KEY_REFUSED = "authorization violation"
"""The server has no codes for these two, and the client library hands its words on, some of them in lower case."""


class Connection:
    """What is asked and heard through it is a subclass's, which is told of every change."""

    def __init__(self, address: ServerAddress, name: str, *, starting: bool = False) -> None:
        """`starting`: the server is being started, and that nobody answers yet is no news."""
        self._address = address
        self._name = name
        self._key_refused = False
        self._client = self._trying = PatientClient()
        self._up = anyio.Event()
        self._closed = anyio.Event()
        self._closing = False
        self._last_error = ""
        self._starting = starting
        self._said = ""
        """Why no server is reached, as it was logged last: tries in vain come four times a second."""

    # told to a subclass -----------------------------------------------------------------------------------------------

    async def _replaced(self) -> None:
        """There is another client, which carries no subscription yet."""

    def _renewed(self) -> None:
        """The server is there, and may permit what it did not."""

    def _cut(self) -> None:
        """The connection is lost."""

    def _refuse(self, verb: str, subject: str) -> None:
        """The server permits our key no `publish` or `subscription` there. `subject` is in lower case."""

    # the client -------------------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Connects, or raises after ten seconds in which this process could run.

        Raises:
            BusUnavailable: no server answers.
            NotPermitted: it refuses our key.
            ConfigurationError: the file with certificates cannot be read.
        """
        self._address = await self._address_now()
        client = self._trying = PatientClient()
        client._transport = Transport()  # type: ignore[no-untyped-call]
        encryption = _encryption(self._address)
        self._key_refused = False
        credentials = str(self._address.credentials_file) if self._address.credentials_file else None
        servers = await nearest_first(self._address.urls)
        try:
            async with fail_after_running(_CONNECT_S):
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
                    tls_hostname=self._address.server_name or None,
                    inbox_prefix=self._address.inbox_prefix,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=_RECONNECT_S,  # type: ignore[arg-type]
                    connect_timeout=_GREETING_S,  # type: ignore[arg-type]
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
        await self._replaced()
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
                if not self.is_up and (moved := await self._address_now()) != self._address:
                    self._last_error = f"the server is at {moved.url} now"
                    self._closed.set()
            _log.warning("bus_client_replaced", client=self._name, reason=self._last_error)
            await self._discard(self._client)
            try:
                await self.connect()
            except (BusError, ConfigurationError) as error:
                # Files are written anew too while a server moves.
                self._last_error = str(error)
                await anyio.sleep(_RECONNECT_S)

    async def _address_now(self) -> ServerAddress:
        """The same one, unless its file says that the server is on another machine by now."""
        file = self._address.file
        if file is None:
            return self._address
        with anyio.move_on_after(_LOOK_S):
            try:
                where = await anyio.to_thread.run_sync(read_whereabouts, file, abandon_on_cancel=True)
                return replace(self._address, url=where.url, server_name=where.server_name)
            except (BusError, ConfigurationError) as error:
                _log.debug("server_address_unread", file=str(file), reason=str(error))
        return self._address

    def _look_after(self, client: Client) -> None:
        """Sees to it that a client which lost its connection gets another.

        The library first waits until what it had not sent yet has gone out, over a connection that it knows to be dead: until
        the kernel gives up, after a quarter of an hour. And an error that it does not expect ends its trying, or its reading,
        without a word.
        """
        if client.is_reconnecting and self.is_up:
            if isinstance(client._transport, Transport):
                client._transport.abort()
            return
        task = client._reading_task if client.is_connected else client._reconnection_task
        if task is not None and task.done():
            self._closed.set()

    async def close(self) -> None:
        self._closing = True
        await self._discard(self._client)

    async def _discard(self, client: Client) -> None:
        with anyio.move_on_after(CLOSING_S, shield=True):
            try:
                if client.is_connected:
                    await client.flush(timeout=1)
                await client.close()
            except (OSError, nats.errors.Error) as error:
                _log.debug("bus_close_failed", client=self._name, reason=str(error))
        if isinstance(client._transport, Transport):
            client._transport.end()

    async def _note_error(self, error: Exception) -> None:
        # The library's read loop dies silently when this raises.
        self._last_error = str(error) or type(error).__name__
        if isinstance(error, TimeoutError) and not self.is_up:
            options = self._trying.options
            options["connect_timeout"] = min(2 * options["connect_timeout"], _LONGEST_GREETING_S)
        # A server that refuses a key hangs up at once, which may overtake its word, and is late to greet on a machine that is
        # full: neither takes back what it said before.
        if not isinstance(error, ConnectionResetError | TimeoutError):
            self._key_refused = _KEY_REFUSED in self._last_error.lower()
        refusal = _REFUSED.search(self._last_error)
        if refusal is not None:
            self._refuse(refusal[1].lower(), refusal[2].lower())
        elif self._closing:
            return
        elif self.is_up:
            _log.info("bus_client_error", client=self._name, reason=self._last_error)
        elif self._last_error != self._said and not (self._starting and isinstance(error, ConnectionRefusedError)):
            self._said = self._last_error
            _log.info("server_not_reached", client=self._name, url=self._address.url, reason=self._last_error)

    async def _lost(self) -> None:
        if self._up.is_set():
            self._up = anyio.Event()
        self._cut()

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
        self._client.options["connect_timeout"] = _GREETING_S
        self._renewed()
        self._said = ""
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

    async def round_trip(self, timeout_s: float) -> None:
        """Returns once the server has seen everything sent before, and we have read everything it had sent.

        Raises:
            NoAnswer: there is no connection, it was lost, or the server has not said so in time.
        """
        if not self.is_up:
            raise NoAnswer("no connection")
        try:
            with anyio.fail_after(timeout_s):
                # The library's ping overtakes what waits to be sent; the second one comes behind it.
                await self._client.flush()
                await self._client.flush()
        except (OSError, nats.errors.Error) as error:
            raise NoAnswer(f"no answer to a ping within {timeout_s:g} s") from error


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
