"""Plays a `Site` at the end of a connection, over HTTP/1.1 (RFC 9112), without leaving the process.

Invariant: one request is answered after the other, whatever the site takes for each.
"""

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import cast
from urllib.parse import urlsplit

import h11
import structlog

from browser_workers.network.pipe import End
from browser_workers.network.requests import MAX_HEAD
from browser_workers.site import Site, SiteRequest, SiteResponse

_log = structlog.get_logger()
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_BROKEN = SiteResponse(status=500, body=b"the site failed", content_type="text/plain")


async def connect_played(end: Callable[[], End], site: Site) -> End:
    """A connection to `site`. Raises `OSError` when the process may have no more sockets."""
    loop = asyncio.get_running_loop()
    visitor, host = socket.socketpair()
    await loop.create_connection(lambda: _Host(site), sock=host)
    return (await loop.create_connection(end, sock=visitor))[1]


class _Host(asyncio.Protocol):
    """The site's side of one connection."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._request: h11.Request
        """The one that is being answered."""
        self._body = b""
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        self._hear()

    def _hear(self) -> None:
        try:
            while not self._transport.is_closing():
                match self._http.next_event():
                    case h11.Request() as request:
                        self._request, self._body = request, b""
                    case h11.Data(data=data):
                        self._body += data
                    case h11.EndOfMessage():
                        self._begin_answer()
                    case _:
                        return
        except h11.RemoteProtocolError:
            self._transport.abort()

    def _begin_answer(self) -> None:
        response = self._response()
        if response.after_s:
            self._waiting = asyncio.get_running_loop().call_later(response.after_s, self._answer, response)
        else:
            self._answer(response)

    def _response(self) -> SiteResponse:
        target = urlsplit(self._request.target.decode("ascii"))
        request = SiteRequest(
            path=target.path,
            query=target.query,
            method=self._request.method.decode("ascii"),
            headers={name.decode("ascii"): value.decode("latin-1") for name, value in self._request.headers},
            body=bytes(self._body),
        )
        try:
            return self._site.respond(request)
        except Exception:  # noqa: BLE001 - a site of anybody's own: one page of it fails, not the gate
            _log.exception("site_failed", origin=self._site.origin, path=request.path)
            return _BROKEN

    def _answer(self, response: SiteResponse) -> None:
        self._waiting = None
        if self._transport.is_closing():
            return
        if response.breaks_off:
            self._transport.abort()
            return
        headers = {"content-type": response.content_type, **response.headers, "content-length": str(len(response.body))}
        has_body = self._request.method != b"HEAD" and response.status not in _WITHOUT_BODY
        events: list[h11.Event] = [
            h11.Response(status_code=response.status, headers=list(headers.items())),
            h11.Data(data=response.body if has_body else b""),
            h11.EndOfMessage(),
        ]
        self._transport.write(b"".join(self._http.send(event) or b"" for event in events))
        if self._http.our_state is h11.MUST_CLOSE:
            self._transport.close()
            return
        self._http.start_next_cycle()
        self._hear()
