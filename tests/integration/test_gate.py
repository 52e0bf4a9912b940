"""The gate on real sockets: where connections go, what is held, what is left."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from types import SimpleNamespace

import anyio
import anyio.abc
import anyio.lowlevel
import psutil
import pytest
import structlog

from browser_workers.network import gate as gate_module
from browser_workers.network import race
from browser_workers.network.addresses import Address
from browser_workers.network.gate import Gate
from browser_workers.network.outside import Network
from browser_workers.network.pipe import End
from browser_workers.network.rules import Rules
from tests.deadlines import HANGS_S
from tests.support.browsers.gate_callers import answer_of, ask, credentials, serving
from tests.support.browsers.staged_network import PUBLIC_NETWORKS, StagedNetwork


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


pytestmark = [pytest.mark.anyio, pytest.mark.integration]
PRIVATE = Rules(private_networks=(ip_network("127.0.0.0/8"),))
SIZE = 32 * 2**20


@asynccontextmanager
async def listener(handle: Callable[[anyio.abc.SocketStream], Awaitable[None]]) -> AsyncIterator[int]:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        group.cancel_scope.cancel()


async def echo(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        with suppress(anyio.BrokenResourceError):
            async for data in stream:
                await stream.send(data)


async def greet(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        await stream.send(b"welcome")


async def flood(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        with suppress(anyio.BrokenResourceError):
            await stream.send(bytes(SIZE))


def clock_of_the_gate(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Puts it forward by so many seconds: what takes its time to open is not old by that."""
    passed: list[float] = []
    monkeypatch.setattr(gate_module, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + sum(passed)))
    return passed.append


async def test_what_is_permitted_is_piped_both_ways() -> None:
    async with listener(echo) as port, serving(Gate(PRIVATE)) as gate:
        stream, answer = await ask(gate, "127.0.0.1", port)
        assert answer is HTTPStatus.OK
        await stream.send(b"hello")
        assert await stream.receive() == b"hello"
        assert gate.num_open == 2
        await stream.aclose()


async def test_private_addresses_are_refused_with_the_reason() -> None:
    async with listener(echo) as port, serving(Gate(Rules())) as gate:
        for host in ("127.0.0.1", "localhost", "0x7f.1"):
            assert await answer_of(gate, host, port) is HTTPStatus.FORBIDDEN
            assert "a loopback address" in gate.why_blocked(host)


async def test_a_page_that_tries_every_port_does_not_fill_the_log() -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(Gate(Rules())) as gate:
            for port in range(1, 100):
                assert await answer_of(gate, "127.0.0.1", port) is HTTPStatus.FORBIDDEN
    assert [line["port"] for line in logs if line["event"] == "host_refused"] == list(range(1, 33))


async def test_more_callers_than_the_gate_gets_to_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers that are gone already wait in its queue too, where the loop is behind."""
    monkeypatch.setattr(gate_module, "_MAX_CONNECTIONS", 2)
    gate = Gate(PRIVATE)

    async def behind(_: object) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(gate, "_dispatch", behind)
    async with serving(gate):
        request = b"CONNECT 127.0.0.1:9 HTTP/1.1\r\nHost: 127.0.0.1:9\r\n" + credentials(gate) + b"\r\n"
        for number in (1, 2):
            async with await anyio.connect_tcp("127.0.0.1", gate.port) as gone:
                await gone.send(request)
            with anyio.fail_after(HANGS_S):
                while gate.num_open or gate._wanted.statistics().current_buffer_used < number:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
        assert await answer_of(gate, "127.0.0.1", 9) is HTTPStatus.TOO_MANY_REQUESTS


async def test_a_denied_name_is_not_even_looked_up() -> None:
    staged = StagedNetwork({"x.ads.example": (("127.0.0.1",),)}, served={})
    async with serving(Gate(Rules(denied_hosts=("ads.example",)), staged.network)) as gate:
        assert await answer_of(gate, "x.ads.example", 80) is HTTPStatus.FORBIDDEN
        assert "denied_hosts" in gate.why_blocked("x.ads.example")
    assert staged.looked_up == []


async def test_only_permitted_addresses_of_a_name_are_tried() -> None:
    async with listener(echo) as port:
        staged = StagedNetwork({"a.example": (("10.255.255.1", "127.0.0.1", "169.254.169.254"),)}, served={"127.0.0.1": port})
        async with serving(Gate(PRIVATE, staged.network)) as gate:
            assert await answer_of(gate, "a.example", port) is HTTPStatus.OK
        assert staged.connected == [("127.0.0.1", port)]


SIXTH = ("2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4")
FOURTH = ("192.0.2.1", "192.0.2.2")
DOCUMENTED = Rules(private_networks=tuple(map(ip_network, PUBLIC_NETWORKS)))


class Addresses:
    """Of one name: each is silent, refuses, or leads to `port` of loopback."""

    def __init__(self, port: int, **does: str) -> None:
        self.tried: list[str] = []
        self.num_under_way = 0
        self._port, self._does = port, does

    def gate(self, *addresses: str) -> Gate:
        return Gate(DOCUMENTED, Network(lambda host: tuple(map(ip_address, addresses)), self._connect))

    async def _connect(self, end: Callable[[], End], address: Address, port: int) -> End:
        self.tried.append(str(address))
        self.num_under_way += 1
        try:
            return await self._connected(end, str(address))
        finally:
            self.num_under_way -= 1

    async def _connected(self, end: Callable[[], End], address: str) -> End:
        does = "reached" if address.startswith("192") else "silent"
        match self._does.get(address, does):
            case "silent":
                await anyio.sleep_forever()
            case "refuses":
                raise ConnectionRefusedError
        return await Network().connect(end, ip_address("127.0.0.1"), self._port)


async def test_an_address_that_is_silent_holds_up_nobody_and_is_left_alone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "_NEXT_S", 0.01)
    async with listener(echo) as port:
        names = Addresses(port)
        async with serving(names.gate(*SIXTH, *FOURTH)) as gate:
            stream, answer = await ask(gate, "both.example", 443)
            assert answer is HTTPStatus.OK
            await stream.send(b"hello")
            assert await stream.receive() == b"hello"
            assert gate.num_open == 2
            await stream.aclose()
            assert names.tried[:2] == [SIXTH[0], FOURTH[0]], "the other kind comes next"
            assert names.num_under_way == 0, "what was not needed is given up"
            monkeypatch.setattr(race, "_NEXT_S", HANGS_S)
            names.tried.clear()
            for _ in range(3):
                assert await answer_of(gate, "both.example", 443) is HTTPStatus.OK
            assert names.tried == [FOURTH[0]] * 3


async def test_the_next_address_is_tried_at_once_where_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "_NEXT_S", HANGS_S)
    async with listener(echo) as port:
        names = Addresses(port, **dict.fromkeys(FOURTH, "refuses"))
        async with serving(names.gate(*FOURTH, "192.0.2.3")) as gate:
            assert await answer_of(gate, "a.example", 80) is HTTPStatus.OK
            assert names.tried == [*FOURTH, "192.0.2.3"]
        async with serving(names.gate(*FOURTH)) as gate:
            assert await answer_of(gate, "a.example", 80) is HTTPStatus.BAD_GATEWAY
            assert gate.why_blocked("a.example") == "a.example:80 refused the connection"


async def test_only_so_many_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "_NEXT_S", HANGS_S)
    addresses = [f"192.0.2.{number}" for number in range(1, 30)]
    names = Addresses(9, **dict.fromkeys(addresses, "refuses"))
    async with serving(names.gate(*addresses)) as gate:
        assert await answer_of(gate, "many.example", 80) is HTTPStatus.BAD_GATEWAY
    assert names.tried == addresses[:8]


async def test_of_two_that_connect_one_is_joined_and_the_other_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "_NEXT_S", 0.01)
    both = anyio.Event()

    async def connect(end: Callable[[], End], address: Address, port: int) -> End:
        if address == ip_address(FOURTH[1]):
            both.set()
        await both.wait()
        return await Network().connect(end, ip_address("127.0.0.1"), leads_to)

    async with listener(echo) as leads_to:
        names = Network(lambda host: tuple(map(ip_address, FOURTH)), connect)
        async with serving(Gate(DOCUMENTED, names)) as gate:
            stream, answer = await ask(gate, "a.example", 443)
            assert answer is HTTPStatus.OK
            with anyio.fail_after(HANGS_S):
                while gate.num_open > 2:
                    await anyio.lowlevel.checkpoint()
            for said in (b"one", b"two"):
                await stream.send(said)
                assert await stream.receive() == said
            await stream.aclose()


async def test_no_try_is_left_when_a_caller_goes_or_the_gate_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "_NEXT_S", 0.01)
    names = Addresses(9, **{FOURTH[0]: "silent"})
    async with serving(names.gate(*SIXTH, FOURTH[0])) as gate:
        request = b"CONNECT a.example:80 HTTP/1.1\r\nHost: a.example\r\n" + credentials(gate) + b"\r\n"
        async with await anyio.connect_tcp("127.0.0.1", gate.port) as hanging:
            await hanging.send(request)
            await number_under_way(names, 5)
        await number_under_way(names, 0)
        async with await anyio.connect_tcp("127.0.0.1", gate.port) as hanging:
            await hanging.send(request)
            await number_under_way(names, 5)
            gate.close()
            await gate.wait_closed()
            assert (names.num_under_way, gate.num_open) == (0, 0)


async def number_under_way(names: Addresses, number: int) -> None:
    with anyio.fail_after(HANGS_S):
        while names.num_under_way != number:  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_name_is_looked_up_once_an_episode_however_many_ask() -> None:
    staged = StagedNetwork({"a.example": (("10.0.0.1",), ("127.0.0.1",))}, served={})
    async with serving(Gate(PRIVATE, staged.network)) as gate:
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(answer_of, gate, "a.example", 80)
        assert await answer_of(gate, "A.example.", 443) is HTTPStatus.FORBIDDEN
    assert staged.looked_up == ["a.example"]
    assert staged.connected == []


async def test_a_name_that_was_not_found_is_looked_up_again() -> None:
    staged = StagedNetwork({}, served={})
    async with serving(Gate(PRIVATE, staged.network)) as gate:
        for _ in range(2):
            assert await answer_of(gate, "a.example", 80) is HTTPStatus.BAD_GATEWAY
    assert staged.looked_up == ["a.example"] * 2


async def test_an_episode_has_so_many_names_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.network.names._MAX_NAMES", 2)
    staged = StagedNetwork({f"{name}.example": (("10.0.0.1",),) for name in "abc"}, served={})
    async with serving(Gate(PRIVATE, staged.network)) as gate:
        answers = [await answer_of(gate, f"{name}.example", 80) for name in "abca"]
        assert "2 names already" in gate.why_blocked("c.example")
    assert answers == [HTTPStatus.FORBIDDEN, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.FORBIDDEN]
    assert staged.looked_up == ["a.example", "b.example"]


async def test_what_fails_is_said_and_forgotten_when_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.network.gate._CONNECT_S", HANGS_S)  # a name server may be silent
    async with serving(Gate(PRIVATE)) as gate:
        async with listener(echo) as port:
            pass
        assert await answer_of(gate, "127.0.0.1", port) is HTTPStatus.BAD_GATEWAY
        assert gate.why_blocked("127.0.0.1") == f"127.0.0.1:{port} refused the connection"
        assert await answer_of(gate, "no.such.host.invalid", 80) is HTTPStatus.BAD_GATEWAY
        assert gate.why_blocked("no.such.host.invalid") == "no address is known for no.such.host.invalid"
        async with listener(echo) as port:
            assert await answer_of(gate, "127.0.0.1", port) is HTTPStatus.OK
        assert gate.why_blocked("127.0.0.1") == ""


async def test_an_error_that_nobody_foresaw_fails_one_connection_and_is_logged_once() -> None:
    async def connect(end: Callable[[], End], address: Address, port: int) -> End:
        if port == 1:
            raise KeyError("a table of routes")
        return await Network().connect(end, address, port)

    with structlog.testing.capture_logs() as logs:
        async with listener(echo) as port, serving(Gate(PRIVATE, Network(connect=connect))) as gate:
            for _ in range(3):
                assert await answer_of(gate, "127.0.0.1", 1) is HTTPStatus.BAD_GATEWAY
            assert "unexpected KeyError: 'a table of routes'" in gate.why_blocked("127.0.0.1")
            assert await answer_of(gate, "127.0.0.1", port) is HTTPStatus.OK
    assert [(line["event"], line["error"]) for line in logs] == [("connection_failed", "KeyError: 'a table of routes'")]


async def test_a_slow_reader_holds_a_buffer_and_loses_nothing() -> None:
    async with listener(flood) as port, serving(Gate(PRIVATE)) as gate:
        stream, answer = await ask(gate, "127.0.0.1", port)
        assert answer is HTTPStatus.OK
        received, most = 0, 0
        async for data in stream:
            received += len(data)
            most = max(most, gate.num_held_bytes)
            await anyio.lowlevel.checkpoint()
        await stream.aclose()
        assert received == SIZE
        assert most < 2**20


async def test_a_page_has_so_many_connections_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.network.gate._MAX_CONNECTIONS", 3)
    async with listener(echo) as port, serving(Gate(PRIVATE)) as gate:
        first, answer = await ask(gate, "127.0.0.1", port)
        assert answer is HTTPStatus.OK
        assert await answer_of(gate, "127.0.0.1", port) is HTTPStatus.TOO_MANY_REQUESTS
        assert gate.why_blocked("127.0.0.1") == "the episode has 3 connections already"
        await first.aclose()
        with anyio.fail_after(HANGS_S):
            while gate.num_open:
                await anyio.lowlevel.checkpoint()
        assert await answer_of(gate, "127.0.0.1", port) is HTTPStatus.OK


async def test_a_site_that_speaks_first_is_heard() -> None:
    async with listener(greet) as port, serving(Gate(PRIVATE)) as gate:
        for _ in range(20):
            stream, answer = await ask(gate, "127.0.0.1", port)
            assert answer is HTTPStatus.OK
            assert await stream.receive() == b"welcome"
            await stream.aclose()


async def test_strangers_are_few_and_have_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.network.gate._MAX_STRANGERS", 3)
    wait = clock_of_the_gate(monkeypatch)
    async with listener(echo) as port, serving(Gate(PRIVATE, stranger_s=20.0, sweep_s=0.02)) as gate:
        known, answer = await ask(gate, "127.0.0.1", port)
        assert answer is HTTPStatus.OK
        strangers = [await anyio.connect_tcp("127.0.0.1", gate.port) for _ in range(20)]
        wait(21.0)
        for stranger in strangers:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stranger.receive()
            await stranger.aclose()
        await known.send(b"still here")
        assert await known.receive() == b"still here"
        assert gate.num_open == 2
        await known.aclose()


async def test_more_strangers_than_places_put_the_oldest_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.network.gate._MAX_STRANGERS", 3)
    async with listener(echo) as port, serving(Gate(PRIVATE)) as gate:
        strangers = [await anyio.connect_tcp("127.0.0.1", gate.port) for _ in range(4)]
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await strangers[0].receive()
        assert await answer_of(gate, "127.0.0.1", port) is HTTPStatus.OK
        for stranger in strangers:
            await stranger.aclose()


async def test_each_episode_has_a_password_of_its_own() -> None:
    async with listener(echo) as port, serving(Gate(PRIVATE)) as gate, serving(Gate(PRIVATE)) as another:
        assert gate.password != another.password
        another.port, port_of_another = gate.port, another.port
        assert await answer_of(another, "127.0.0.1", port) is HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
        another.port = port_of_another
        assert await answer_of(another, "127.0.0.1", port) is HTTPStatus.OK


async def test_a_stranger_is_logged_once_when_the_browser_is_known() -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(Gate(PRIVATE)) as gate:
            right, gate.password = gate.password, "wrong"
            assert await answer_of(gate, "127.0.0.1", 80) is HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
            assert logs == []
            gate.password = right
            assert await answer_of(gate, "gate.invalid", 80) is HTTPStatus.NO_CONTENT
            gate.password = "wrong"
            for _ in range(3):
                assert await answer_of(gate, "127.0.0.1", 80) is HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
    assert [line["event"] for line in logs] == ["stranger_at_gate"]


async def test_unused_connections_end(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = clock_of_the_gate(monkeypatch)
    async with listener(echo) as port, serving(Gate(PRIVATE, idle_s=300.0, sweep_s=0.02)) as gate:
        stream, _ = await ask(gate, "127.0.0.1", port)
        silent = await anyio.connect_tcp("127.0.0.1", gate.port)
        wait(301.0)
        for each in (stream, silent):
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await each.receive()
            await each.aclose()
        assert gate.num_open == 0


async def test_nothing_is_left_when_it_closes() -> None:
    asked = anyio.Event()

    async def connect(end: Callable[[], End], address: Address, port: int) -> End:
        if address.is_loopback:
            return await Network().connect(end, address, port)
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    rules = Rules(private_networks=(*PRIVATE.private_networks, ip_network("192.0.2.0/24")))
    async with listener(echo) as port, listener(flood) as flooding:
        before = len(psutil.Process().net_connections("tcp"))
        async with anyio.create_task_group() as group:
            gate = Gate(rules, Network(connect=connect))
            await group.start(gate.serve)
            streams = [(await ask(gate, "127.0.0.1", each))[0] for each in (port, port, flooding)]
            # One whose site does not answer.
            hanging = await anyio.connect_tcp("127.0.0.1", gate.port)
            await hanging.send(b"CONNECT 192.0.2.1:80 HTTP/1.1\r\nHost: 192.0.2.1\r\n" + credentials(gate) + b"\r\n")
            await asked.wait()
            gate.close()
        assert gate.num_open == 0
        for stream in (*streams, hanging):
            await stream.aclose()
        with anyio.fail_after(HANGS_S):
            while len(psutil.Process().net_connections("tcp")) > before:
                await anyio.lowlevel.checkpoint()
