"""The two ends of one way through the gate: whoever called, and the site that it is led to.

Invariants: who has not shown the password is told to, and nothing else; one call leads to one site, whatever is asked for
later on it, and by one connection, however many are opened for it.
"""

import asyncio
import time
from http import HTTPStatus
from typing import Protocol

import anyio

from browser_workers.network.pipe import End, join
from browser_workers.network.requests import (
    ESTABLISHED,
    MAX_HEAD,
    PASSWORD_WANTED,
    WELCOME,
    Malformed,
    Reader,
    Request,
    Target,
    failed,
)

SIGN_IN_HOST = "gate.invalid"
"""The gate itself: a browser that gets there knows the password."""


class Keeper(Protocol):
    """What both ask of the gate."""

    def admit(self, end: End) -> bool:
        """Counts a new connection in, unless there are too many."""
        ...

    def discharge(self, end: End) -> None: ...

    def knows(self, caller: "Caller", credentials: bytes) -> bool:
        """Whether that is the password."""
        ...

    def sign_in(self) -> None: ...

    def want(self, caller: "Caller", target: Target) -> None:
        """Leads the caller there, later."""
        ...

    async def connect(self, caller: "Caller", target: Target) -> None: ...


class Callee(End):
    """Joined before it can receive anything."""

    def __init__(self, keeper: Keeper, caller: "Caller") -> None:
        super().__init__()
        self._keeper = keeper
        self._caller = caller

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._keeper.admit(self):
            self._caller.join(self)
        else:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._keeper.discharge(self)


class Caller(End):
    def __init__(self, keeper: Keeper) -> None:
        super().__init__()
        self.called_at = time.monotonic()
        self._keeper = keeper
        self._reader = Reader()
        self._first: Request | None = None
        """Says where the call leads."""
        self._is_over = False
        self._connecting: anyio.CancelScope | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._keeper.admit(self):
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        if self._connecting is not None:
            self._connecting.cancel()
        self._keeper.discharge(self)

    def data_received(self, data: bytes) -> None:
        if self._first is not None and self._first.is_tunnel and self.other is not None:
            super().data_received(data)
            return
        self.used_at = time.monotonic()
        self._reader.feed(data)
        self._listen()
        if self._first is not None and self._reader.num_held > MAX_HEAD:
            # It goes on when there is somebody to send it to.
            self.transport.pause_reading()

    def _listen(self) -> None:
        try:
            while not self._is_over and (self._first is None or self.other is not None):
                piece = self._reader.take()
                if piece is None:
                    return
                self._hear(piece)
        except Malformed:
            self._is_over = True
            self.transport.abort()

    def _hear(self, piece: Request | bytes) -> None:
        if isinstance(piece, bytes):
            self._send(piece)
        elif not self._keeper.knows(self, piece.credentials):
            self._end(PASSWORD_WANTED)
        elif self._first is None and piece.target.host == SIGN_IN_HOST:
            self._keeper.sign_in()
            self._end(WELCOME)
        elif self._first is None:
            self._first = piece
            self._keeper.want(self, piece.target)
        elif piece.is_tunnel or piece.target != self._first.target:
            raise Malformed("another site on the same call")
        else:
            self._send(piece.head)

    def _send(self, data: bytes) -> None:
        if self.other is not None:
            self.other.transport.write(data)

    def _end(self, answer: bytes = b"") -> None:
        self._is_over = True
        self.transport.write(answer)
        self.transport.close()

    async def connect(self, target: Target) -> None:
        """For as long as the caller waits for it."""
        if not self.transport.is_closing():
            with anyio.CancelScope() as self._connecting:
                await self._keeper.connect(self, target)

    def join(self, site: Callee) -> None:
        if self.transport.is_closing() or self._first is None or self.other is not None:
            site.transport.abort()
            return
        join(self, site)
        self.transport.resume_reading()
        if self._first.is_tunnel:
            self.transport.write(ESTABLISHED)
            self._send(self._reader.take_all())
        else:
            self._send(self._first.head)
            self._listen()

    def refuse(self, status: HTTPStatus) -> None:
        """A page is to see no answer: as a document it would be the site's own."""
        self._end(failed(status) if self._first is not None and self._first.is_tunnel else b"")
