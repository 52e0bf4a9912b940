"""Serves a `Site` over HTTP on loopback, so that a person can look at it in a browser of their own."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import anyio

from browser_workers.site import Site, SiteRequest
from schemas.errors import ConfigurationError

_LOOPBACK = "127.0.0.1"
_MAX_BODY_BYTES = 1 << 20
_TIMEOUT_S = 30.0
"""For a client that sends nothing."""
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER that makes closing a socket a reset."""


async def serve(site: Site, port: int) -> int:
    """Until it is cancelled. Raises `ConfigurationError` when the port is taken."""
    with site_server(site, port) as address:
        print(f"{address}  (Ctrl-C ends it)", flush=True)
        await anyio.sleep_forever()
    return 0


@contextmanager
def site_server(site: Site, port: int) -> Iterator[str]:
    """The address that the site has while the body runs; port 0 takes a free one.

    Raises:
        ConfigurationError: the port is taken.
    """
    try:
        server = _Server(site, port)
    except OSError as error:
        raise ConfigurationError(f"port {port} cannot be used ({error.strerror}); name another one with --port") from error
    thread = threading.Thread(target=server.serve_forever, name="site", daemon=True)
    thread.start()
    try:
        yield f"http://{_LOOPBACK}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        super().__init__((_LOOPBACK, port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT_S
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """The person looks at the page, not at a log."""

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        length = self.headers.get("content-length", "0")
        num_bytes = min(int(length), _MAX_BODY_BYTES) if length.isdecimal() else 0
        response = self.server.site.respond(
            SiteRequest(
                path=parts.path,
                query=parts.query,
                method=self.command,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(num_bytes),
            )
        )
        time.sleep(response.after_s)
        if response.breaks_off:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.connection.close()
            return
        self.send_response(response.status)
        for name, value in {"content-type": response.content_type, **response.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(response.body)))
        self.end_headers()
        self.wfile.write(response.body)
