"""The gate on real sockets: where connections go, what is held, what is left."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

import anyio
import anyio.abc
import anyio.lowlevel
import psutil
import pytest
import structlog

from browser_workers.network.gate import Gate
from browser_workers.network.rules import Endpoint, Rules
from browser_workers.network.socks import Answer


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(20)]
PRIVATE = Rules(allow_private_hosts=True)
SIZE = 32 * 2**20


@asynccontextmanager
async def serving(gate: Gate) -> AsyncIterator[Gate]:
    async with anyio.create_task_group() as group:
        await group.start(gate.serve)
        yield gate
        gate.close()


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


async def ask(gate: Gate, host: str, port: int) -> tuple[anyio.abc.SocketStream, Answer]:
    stream = await anyio.connect_tcp("127.0.0.1", gate.port)
    await stream.send(b"\5\1\0")
    assert await stream.receive() == b"\5\0"
    await stream.send(b"\5\1\0\3" + bytes((len(host),)) + host.encode() + port.to_bytes(2, "big"))
    return stream, Answer((await stream.receive(10))[1])


async def answer_of(gate: Gate, host: str, port: int) -> Answer:
    stream, answer = await ask(gate, host, port)
    await stream.aclose()
    return answer


class Resolver:
    """Each look-up gets the next of the answers; the last for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: tuple[str, ...]) -> None:
        self.asked: list[bytes] = []
        self._answers = list(answers)
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host: bytes, *_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        self.asked.append(host)
        answers = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answer, 0)) for answer in answers]


async def test_what_is_permitted_is_piped_both_ways() -> None:
    async with listener(echo) as port, serving(Gate(PRIVATE)) as gate:
        stream, answer = await ask(gate, "127.0.0.1", port)
        assert answer is Answer.CONNECTED
        await stream.send(b"hello")
        assert await stream.receive() == b"hello"
        assert gate.num_open == 2
        await stream.aclose()


async def test_private_addresses_are_refused_with_the_reason() -> None:
    async with listener(echo) as port, serving(Gate(Rules())) as gate:
        for host in ("127.0.0.1", "localhost", "0x7f.1"):
            assert await answer_of(gate, host, port) is Answer.NOT_ALLOWED
            assert "a loopback address" in gate.why_blocked(host)


async def test_a_page_that_tries_every_port_does_not_fill_the_log() -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(Gate(Rules())) as gate:
            for port in range(1, 100):
                assert await answer_of(gate, "127.0.0.1", port) is Answer.NOT_ALLOWED
    assert [line["port"] for line in logs if line["event"] == "host_refused"] == list(range(1, 33))


async def test_a_denied_name_is_not_even_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(monkeypatch, ("127.0.0.1",))
    async with serving(Gate(Rules(denied_hosts=("ads.example",)))) as gate:
        assert await answer_of(gate, "x.ads.example", 80) is Answer.NOT_ALLOWED
        assert "denied_hosts" in gate.why_blocked("x.ads.example")
    assert resolver.asked == []


async def test_only_permitted_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listener(echo) as port:
        Resolver(monkeypatch, ("10.255.255.1", "127.0.0.1"))
        rules = Rules(own=Endpoint("own.example", port), own_addresses=frozenset({ip_address("127.0.0.1")}))
        async with serving(Gate(rules)) as gate:
            assert await answer_of(gate, "own.example", port) is Answer.CONNECTED
            assert await answer_of(gate, "other.example", port) is Answer.NOT_ALLOWED


async def test_a_name_that_changes_its_mind_reaches_nothing_private(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task's own site was public at first, as long as it was remembered; then it is on this machine."""
    async with listener(echo) as port:
        resolver = Resolver(monkeypatch, ("192.0.2.1",), ("127.0.0.1",))
        monkeypatch.setattr("browser_workers.network.names._KEPT_S", 0.0)
        monkeypatch.setattr("browser_workers.network.gate._CONNECT_S", 0.2)
        async with serving(Gate(Rules(own=Endpoint("own.example", port)))) as gate:
            await answer_of(gate, "own.example", port)
            assert await answer_of(gate, "own.example", port) is Answer.NOT_ALLOWED
            assert "is at 127.0.0.1" in gate.why_blocked("own.example")
    assert len(resolver.asked) == 2


async def test_answers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(monkeypatch, ("127.0.0.1",))
    async with serving(Gate(Rules())) as gate:
        for _ in range(3):
            await answer_of(gate, "a.example", 80)
    assert resolver.asked == [b"a.example"]


async def test_what_fails_is_said_and_forgotten_when_it_works() -> None:
    async with serving(Gate(PRIVATE)) as gate:
        async with listener(echo) as port:
            pass
        assert await answer_of(gate, "127.0.0.1", port) is Answer.REFUSED
        assert gate.why_blocked("127.0.0.1") == f"127.0.0.1:{port} refused the connection"
        assert await answer_of(gate, "no.such.host.invalid", 80) is Answer.HOST_UNREACHABLE
        assert gate.why_blocked("no.such.host.invalid") == "no address is known for no.such.host.invalid"
        async with listener(echo) as port:
            assert await answer_of(gate, "127.0.0.1", port) is Answer.CONNECTED
        assert gate.why_blocked("127.0.0.1") == ""


async def test_a_slow_reader_holds_a_buffer_and_loses_nothing() -> None:
    async with listener(flood) as port, serving(Gate(PRIVATE)) as gate:
        stream, answer = await ask(gate, "127.0.0.1", port)
        assert answer is Answer.CONNECTED
        received, most = 0, 0
        async for data in stream:
            received += len(data)
            most = max(most, gate.num_held_bytes)
            await anyio.lowlevel.checkpoint()
        await stream.aclose()
        assert received == SIZE
        assert most < 2**20


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\5\1\0\5\2\0\1aaaa\0\0", b"\5\1\2", b"\5\xff" + bytes(300)])
async def test_whoever_speaks_otherwise_is_cut_off(said: bytes) -> None:
    async with serving(Gate(PRIVATE)) as gate:
        stream = await anyio.connect_tcp("127.0.0.1", gate.port)
        await stream.send(said)
        heard = b""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError), anyio.fail_after(5):
            while True:
                heard += await stream.receive()
        assert heard in (b"", b"\5\0")
        await stream.aclose()


async def test_a_page_has_so_many_connections_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.network.gate._MAX_CONNECTIONS", 3)
    async with listener(echo) as port, serving(Gate(PRIVATE)) as gate:
        first, answer = await ask(gate, "127.0.0.1", port)
        assert answer is Answer.CONNECTED
        assert await answer_of(gate, "127.0.0.1", port) is Answer.REFUSED
        assert gate.why_blocked("127.0.0.1") == "the episode has 3 connections already"
        await first.aclose()
        with anyio.fail_after(2):
            while gate.num_open:
                await anyio.lowlevel.checkpoint()
        assert await answer_of(gate, "127.0.0.1", port) is Answer.CONNECTED


async def test_a_site_that_speaks_first_is_heard() -> None:
    async with listener(greet) as port, serving(Gate(PRIVATE)) as gate:
        for _ in range(20):
            stream, answer = await ask(gate, "127.0.0.1", port)
            assert answer is Answer.CONNECTED
            assert await stream.receive() == b"welcome"
            await stream.aclose()


async def test_unused_connections_end() -> None:
    async with listener(echo) as port, serving(Gate(PRIVATE, idle_s=0.05, sweep_s=0.02)) as gate:
        stream, _ = await ask(gate, "127.0.0.1", port)
        silent = await anyio.connect_tcp("127.0.0.1", gate.port)
        for each in (stream, silent):
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await each.receive()
            await each.aclose()
        assert gate.num_open == 0


async def test_nothing_is_left_when_it_closes() -> None:
    async with listener(echo) as port, listener(flood) as flooding:
        before = len(psutil.Process().net_connections("tcp"))
        async with anyio.create_task_group() as group:
            gate = Gate(PRIVATE)
            await group.start(gate.serve)
            streams = [(await ask(gate, "127.0.0.1", each))[0] for each in (port, port, flooding)]
            # One whose site does not answer.
            hanging = await anyio.connect_tcp("127.0.0.1", gate.port)
            await hanging.send(b"\5\1\0\5\1\0\1\xc0\0\2\1\0\x50")
            gate.close()
        assert gate.num_open == 0
        for stream in (*streams, hanging):
            await stream.aclose()
        with anyio.fail_after(2):
            while len(psutil.Process().net_connections("tcp")) > before:
                await anyio.lowlevel.checkpoint()
