"""HTTP/1.1 as a browser speaks it to its proxy (RFC 9110, RFC 9112), read and written by value.

Invariants: what goes on to a site was written anew from what was understood here, so that the site cannot read it otherwise;
the end of a request is known from its head; what is spoken to the proxy alone stays here.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus

import h11

MAX_HEAD = 2**18
"""Bytes of a request without its body: room for all cookies that a browser keeps for a site."""
_AUTHORITY = rb"(?P<authority>(?P<host>[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?)"
_ABSOLUTE = re.compile(rb"http://" + _AUTHORITY + rb"(?P<path>(?:[/?].*)?)")
_TUNNEL = re.compile(_AUTHORITY)
_WEB_PORT = 80
_PASSWORD = b"proxy-authorization"
_NOT_PASSED_ON = frozenset(
    {b"host", b"connection", b"proxy-connection", _PASSWORD, b"keep-alive", b"te", b"trailer", b"upgrade", b"http2-settings"}
)
"""Written anew, or meant for the gate."""

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
PASSWORD_WANTED = (
    b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=gate\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)
WELCOME = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"


class Malformed(Exception):
    """These bytes are no request that is understood here."""


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    """As it was written."""
    port: int


@dataclass(frozen=True, slots=True)
class Request:
    target: Target
    is_tunnel: bool
    """What follows is between the browser and its target."""
    credentials: bytes
    head: bytes
    """As the target is to have it; empty for a tunnel."""


class Reader:
    """What one connection brings, piece by piece."""

    def __init__(self) -> None:
        self._parser = _parser()
        self._held = b""
        self._num_left = 0
        """Bytes of a body that are still to come."""

    @property
    def num_held(self) -> int:
        """Bytes that nobody has taken yet."""
        return len(self._held)

    def feed(self, data: bytes) -> None:
        self._held += data

    def take(self) -> Request | bytes | None:
        """A request, or some of its body; None: more must come. Raises `Malformed`."""
        if not self._held:
            return None
        if self._num_left:
            body, self._held = self._held[: self._num_left], self._held[self._num_left :]
            self._num_left -= len(body)
            return body
        try:
            self._parser.receive_data(self.take_all())
            event = self._parser.next_event()
        except h11.RemoteProtocolError as error:
            raise Malformed(str(error)) from error
        if not isinstance(event, h11.Request):
            return None
        self._held = self._parser.trailing_data[0]
        self._parser = _parser()
        request = _request(event)
        self._num_left = 0 if request.is_tunnel else _body_size(event)
        return request

    def take_all(self) -> bytes:
        """What has come and was not understood as anything: a tunnel's first bytes."""
        held, self._held = self._held, b""
        return held


def failed(status: HTTPStatus) -> bytes:
    """Answers who wanted a tunnel."""
    return f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def _parser() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)


def _request(event: h11.Request) -> Request:
    is_tunnel = event.method == b"CONNECT"
    found = (_TUNNEL if is_tunnel else _ABSOLUTE).fullmatch(event.target)
    if found is None or event.http_version != b"1.1":
        raise Malformed("not what a browser asks its proxy")
    port = int(found["port"] or (0 if is_tunnel else _WEB_PORT))
    if not 0 < port < 2**16:
        raise Malformed("no port")
    return Request(
        target=Target(found["host"].decode("ascii"), port),
        is_tunnel=is_tunnel,
        credentials=next((value for name, value in event.headers if name == _PASSWORD), b""),
        head=b"" if is_tunnel else _head(event, found["authority"], found["path"]),
    )


def _head(event: h11.Request, authority: bytes, path: bytes) -> bytes:
    if any(name == b"transfer-encoding" for name, _ in event.headers):
        # No browser sends one: where a request ends is to be read in one way only.
        raise Malformed("a request of unknown length")
    kept = [
        b"%s: %s" % (spelled, value)
        for (name, value), (spelled, _) in zip(event.headers, event.headers.raw_items(), strict=True)
        if name not in _NOT_PASSED_ON
    ]
    path = path if path.startswith(b"/") else b"/" + path
    first = b"%s %s HTTP/1.1" % (event.method, path)
    return b"\r\n".join((first, b"Host: " + authority, b"Connection: keep-alive", *kept, b"", b""))


def _body_size(event: h11.Request) -> int:
    return next((int(value) for name, value in event.headers if name == b"content-length"), 0)
