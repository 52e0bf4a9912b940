"""Sites that the worker plays, as the gate serves them: real sockets, no browser."""

import http.client
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
import pytest
import structlog

from browser_workers.network.gate import Gate
from browser_workers.network.rules import Rules
from browser_workers.site import SiteRequest, SiteResponse
from tests.deadlines import HANGS_S
from tests.support.browsers.gate_callers import credentials, serving
from tests.support.browsers.staged_network import StagedNetwork

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://played.test"
LARGE = bytes(3_000_000)


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


@dataclass
class Recorded:
    """A site that remembers what it was asked."""

    origin: str = ORIGIN
    asked: list[SiteRequest] = field(default_factory=list)
    is_asked: anyio.Event = field(default_factory=anyio.Event)

    def respond(self, request: SiteRequest) -> SiteResponse:
        self.asked.append(request)
        self.is_asked.set()
        match request.path:
            case "/moved":
                return SiteResponse(status=302, headers={"location": "/", "set-cookie": "a=1; Path=/"})
            case "/large":
                return SiteResponse(LARGE, content_type="application/octet-stream")
            case "/late":
                return SiteResponse(b"late", after_s=0.2)
            case "/never":
                return SiteResponse(b"never", after_s=HANGS_S)
            case "/breaks":
                return SiteResponse(breaks_off=True)
            case "/fails":
                raise ZeroDivisionError("a mistake in a site")
        return SiteResponse(b"here")


class Visitor:
    """A browser with one connection to its proxy."""

    def __init__(self, gate: Gate) -> None:
        name, _, value = credentials(gate).strip().partition(b": ")
        self._headers = {name.decode(): value.decode()}
        self._connection = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=HANGS_S)

    def ask(
        self, path: str, *, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        self._connection.request(method, f"{ORIGIN}{path}", body=body, headers={**self._headers, **(headers or {})})
        response = self._connection.getresponse()
        return response, response.read()

    def close(self) -> None:
        self._connection.close()


@asynccontextmanager
async def played(site: Recorded) -> AsyncIterator[tuple[Gate, Visitor]]:
    staged = StagedNetwork({}, served={})
    async with serving(Gate(Rules(allowed_hosts=("elsewhere.example",)), staged.network, site=site)) as gate:
        visitor = Visitor(gate)
        yield gate, visitor
        visitor.close()
    assert not staged.looked_up
    assert not staged.connected


async def test_what_is_asked_arrives_and_what_is_answered_too() -> None:
    site = Recorded()
    async with played(site) as (gate, visitor):
        response, body = await anyio.to_thread.run_sync(
            lambda: visitor.ask("/a%20b?q=1&r=2", method="POST", body=b"x=y", headers={"Cookie": "a=1", "X-Own": "ü"})
        )
        assert (response.status, response.headers["Content-Type"], body) == (200, "text/html; charset=utf-8", b"here")
        assert gate.num_open == 2
    (request,) = site.asked
    assert (request.path, request.query, request.method, request.body) == ("/a%20b", "q=1&r=2", "POST", b"x=y")
    assert (request.headers["cookie"], request.headers["x-own"]) == ("a=1", "ü")
    assert "proxy-authorization" not in request.headers


async def test_a_connection_is_used_again_and_again() -> None:
    site = Recorded()
    async with played(site) as (gate, visitor):
        for path, status in (("/", 200), ("/moved", 302), ("/large", 200), ("/late", 200), ("/", 200)):
            response, body = await anyio.to_thread.run_sync(visitor.ask, path)
            assert (response.status, gate.num_open) == (status, 2)
            assert body == {"/moved": b"", "/large": LARGE, "/late": b"late"}.get(path, b"here")
        response, body = await anyio.to_thread.run_sync(lambda: visitor.ask("/", method="HEAD"))
        assert (response.headers["Content-Length"], body) == ("4", b"")
    assert len(site.asked) == 6


async def test_a_connection_that_is_broken_off_is_closed_without_a_word() -> None:
    async with played(Recorded()) as (_, visitor):
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            await anyio.to_thread.run_sync(visitor.ask, "/breaks")


async def test_a_mistake_in_a_site_fails_that_page_alone_and_is_logged() -> None:
    with structlog.testing.capture_logs() as logs:
        async with played(Recorded()) as (_, visitor):
            response, _ = await anyio.to_thread.run_sync(visitor.ask, "/fails")
            assert response.status == 500
            response, body = await anyio.to_thread.run_sync(visitor.ask, "/")
            assert (response.status, body) == (200, b"here")
    (line,) = [line for line in logs if line["event"] == "site_failed"]
    assert (line["path"], line["exc_info"]) == ("/fails", True)


async def test_a_visitor_that_leaves_before_the_answer_leaves_nothing_behind() -> None:
    site = Recorded()
    async with played(site) as (gate, visitor), anyio.create_task_group() as group:

        async def ask() -> None:
            with pytest.raises((http.client.HTTPException, OSError)):
                await anyio.to_thread.run_sync(visitor.ask, "/never")

        group.start_soon(ask)
        await site.is_asked.wait()
        gate.close()
        await gate.wait_closed()
        assert gate.num_open == 0


@pytest.mark.parametrize("origin", ["https://played.test", "http://played.test:8080"])
async def test_another_scheme_or_port_is_not_the_site(origin: str) -> None:
    site = Recorded(origin)
    async with played(site) as (gate, visitor):
        assert gate.plays == origin.startswith("http:")
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            await anyio.to_thread.run_sync(visitor.ask, "/")
        assert "not among browser_config.allowed_hosts" in gate.why_blocked("played.test")
    assert not site.asked
