"""Serves an application until it is cancelled: takes the port first, says so when it listens, ends what is under way."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import uvicorn
from starlette.types import ASGIApp

from schemas.errors import ConfigurationError

_TRIES = 20
_GRACE_S = 3


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 8400
    exact: bool = False
    """Take this port or none; else the next free one will do."""
    certificate: Path | None = None
    """With `key`, for TLS."""
    key: Path | None = None
    name: str = ""
    """By which this machine is reached; empty: by the host."""

    def url(self, port: int) -> str:
        name = self.name or self.host
        shown = f"[{name}]" if ":" in name else name
        return f"{'https' if self.certificate else 'http'}://{shown}:{port}/"


def require_usable(listening: Listening) -> None:
    """Before anything else is opened.

    Raises:
        ConfigurationError: the port that was asked for is taken, or the certificate cannot be used.
    """
    if listening.certificate is not None:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(listening.certificate, listening.key)
        except OSError as error:  # ssl.SSLError too
            raise ConfigurationError(
                f"the certificate {listening.certificate} with the key {listening.key} cannot be used ({error}): "
                "give the PEM files of one that was issued for this machine"
            ) from error
    _bind(listening).close()


async def serve(app: ASGIApp, listening: Listening, *, ready: Callable[[str], None], ending: Callable[[], None]) -> None:
    """Until it is cancelled.

    Args:
        ready: is called with the address once it answers.
        ending: ends answers that would go on for ever.

    Raises:
        ConfigurationError: the port is taken.
    """
    bound = _bind(listening)
    url = listening.url(bound.getsockname()[1])
    with bound:
        server = _server(app, listening)
        async with anyio.create_task_group() as group:
            group.start_soon(_run, server, bound)
            try:
                await server.listens.wait()
                ready(url)
                await anyio.sleep_forever()
            finally:
                ending()
                server.should_exit = True


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


async def _run(server: _Server, bound: socket.socket) -> None:
    # It ends by `should_exit`, within its grace period: cancelling it would leave answers half sent.
    with anyio.CancelScope(shield=True):
        await server.serve(sockets=[bound])


def _server(app: ASGIApp, listening: Listening) -> _Server:
    config = uvicorn.Config(
        app,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    config.load()
    return _Server(config)


def _bind(listening: Listening) -> socket.socket:
    """A socket that listens. Raises `ConfigurationError`."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    last: OSError | None = None
    for port in range(listening.port, min(65_536, listening.port + (1 if listening.exact else _TRIES))):
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((listening.host, port))
            bound.listen(128)
        except OSError as error:
            bound.close()
            last = error
        else:
            return bound
    reason = last.strerror if last else "no such port"
    raise ConfigurationError(
        f"port {listening.port} of {listening.host} cannot be used ({reason}); choose another port"
    ) from last
