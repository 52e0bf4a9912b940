"""The socket under the client library, with one name for what happens to it.

The library expects an `OSError` from a connection that is gone and connects again. uvloop raises a `RuntimeError` there, of
which the library's sending task dies without a word: the client says that it is connected, and hands the error to whoever
sends next.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import ParseResult

from nats.aio.transport import TcpTransport


class ConnectionGone(ConnectionResetError, RuntimeError):
    """What the event loop raised stays what it was: the library's pinging task ends in order of a `RuntimeError` alone."""


class Transport(TcpTransport):
    """Raises `ConnectionGone` when it is closed, whatever the event loop raises."""

    _is_ended = False

    def __bool__(self) -> bool:
        # The library takes what is true as it is, and replaces what is not by its own.
        return True

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        # The library forgets the socket of a try that was given up.
        self.abort()
        if not self._is_ended:
            await super().connect(uri, buffer_size, connect_timeout)
        if self._is_ended:
            self.abort()
            raise ConnectionGone("the client is closed")

    def write(self, payload: bytes) -> None:
        with _gone_is_an_os_error():
            super().write(payload)  # type: ignore[no-untyped-call]

    def writelines(self, payload: Sequence[bytes]) -> None:
        with _gone_is_an_os_error():
            super().writelines(payload)  # type: ignore[no-untyped-call]

    async def drain(self) -> None:
        with _gone_is_an_os_error():
            await super().drain()  # type: ignore[no-untyped-call]

    def abort(self) -> None:
        """Ends the connection without waiting for what was not sent yet."""
        if self._io_writer is not None:
            self._io_writer.transport.abort()

    def end(self) -> None:
        """For good: a client whose closing was cut short forgets its socket, and what it began may still connect."""
        self._is_ended = True
        self.abort()


@contextmanager
def _gone_is_an_os_error() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise ConnectionGone(f"the connection is closed: {error}") from error
