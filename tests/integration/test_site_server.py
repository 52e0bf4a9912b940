"""A site over HTTP: status, headers and bodies as the site gives them, a connection that breaks off, a port that is taken."""

import http.client
from urllib.parse import urlsplit

import pytest

from browser_workers.site import SiteRequest, SiteResponse
from ops.web.site_server import site_server
from schemas.errors import ConfigurationError
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.integration]


class Echo:
    origin = "http://echo.test"

    def respond(self, request: SiteRequest) -> SiteResponse:
        said = f"{request.method} {request.path} {request.query} {request.headers['x-test']} {request.body.decode()}"
        return SiteResponse(said.encode(), status=418, headers={"x-site": "yes"}, breaks_off=request.path == "/broken")


def ask(address: str, method: str, path: str, body: bytes = b"") -> tuple[int, str | None, str]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=HANGS_S)
    try:
        connection.request(method, path, body=body, headers={"x-test": "t"})
        response = connection.getresponse()
        return response.status, response.headers["x-site"], response.read().decode()
    finally:
        connection.close()


def test_a_site_over_http() -> None:
    with site_server(Echo(), 0) as address:
        assert urlsplit(address).hostname == "127.0.0.1"
        assert ask(address, "GET", "/a?b=c") == (418, "yes", "GET /a b=c t ")
        assert ask(address, "POST", "/a", b"form") == (418, "yes", "POST /a  t form")
        with pytest.raises(ConnectionResetError):
            ask(address, "GET", "/broken")
        with (
            pytest.raises(ConfigurationError, match="name another one with --port"),
            site_server(Echo(), urlsplit(address).port or 0),
        ):
            pass
    with pytest.raises(ConnectionRefusedError):
        ask(address, "GET", "/a")
