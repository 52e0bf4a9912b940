"""Everything that was thought of to get past the gate, a row each, spoken to it as bytes.

Behind every address that is not public a service listens that must hear nothing; `reached` means the public site alone.
"""

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from enum import Enum

import anyio
import anyio.abc
import pytest

from browser_workers.network.gate import Gate
from browser_workers.network.requests import MAX_HEAD
from browser_workers.network.rules import rules_for
from schemas.browser_config import BrowserConfig
from tests.support.browsers.staged_network import PUBLIC_NETWORKS, StagedNetwork

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
RIGHT = b"Proxy-Authorization: the right one"
PASSWORD = RIGHT + b"\r\n"
PUBLIC, PUBLIC_V6 = "203.0.113.5", "2001:db8::5"
TEREDO_OF_LOOPBACK = "2001:0:4136:e378:8000:63bf:80ff:fffe"
PRIVATE = (
    *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "127.8.8.8", "0.0.0.0", "0"),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    *(f"[{TEREDO_OF_LOOPBACK}]", "localhost", "LocalHost", "localhost.", "a.localhost", "A.B.localhost."),
    *("10.0.0.5", "172.16.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1", "240.0.0.1", "255.255.255.255", "224.0.0.1"),
    *(
        "169.254.169.254",
        "169.254.1.1",
        "100.100.100.200",
        "168.63.129.16",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
    ),
    *("[fd00:ec2::254]", "[fd12::1]", "[fe80::1]", "[fec0::1]", "[ff02::1]", "[64:ff9b:1::1]"),
)
NAMES = {
    "public.example": ((PUBLIC,),),
    "xn--bcher-kva.example": ((PUBLIC_V6,),),
    "both.example": (("10.0.0.5", PUBLIC, "169.254.169.254", "127.0.0.1"),),
    "rebinds.example": ((PUBLIC,), ("127.0.0.1",)),
    "own.example": (("169.254.169.254", "127.0.0.1", "10.0.0.5"),),
    "loopback.example": (("127.0.0.1",),),
    "loopback-v6.example": (("::1",),),
    "mapped.example": (("::ffff:127.0.0.1",),),
    "translated.example": (("64:ff9b::a9fe:a9fe",),),
    "tunnelled.example": ((TEREDO_OF_LOOPBACK,),),
    "private.example": (("10.0.0.5",),),
    "metadata.example": (("169.254.169.254",),),
    "metadata-v6.example": (("fd00:ec2::254",),),
    "nowhere.example": (("0.0.0.0",),),
}
LEADING_IN = (
    "own",
    "loopback",
    "loopback-v6",
    "mapped",
    "translated",
    "tunnelled",
    "private",
    "metadata",
    "metadata-v6",
    "nowhere",
)


class Seen(Enum):
    REACHED = "the public site answers, and hears its own name as Host"
    REFUSED = "no byte of an answer (a tunnel: 403), and the reason is known"
    CUT_OFF = "the call ends without an answer"
    PASSWORD = "407"
    LET_IN = "204, from the gate itself"


@dataclass(frozen=True)
class Attempt:
    name: str
    said: bytes
    """`RIGHT` stands for the password's header."""
    seen: Seen
    host: str = ""
    """Whose reason is known."""


def get(url: str, *headers: str, password: bytes = PASSWORD, host: str = "x") -> bytes:
    lines = (f"GET {url} HTTP/1.1", f"Host: {host}", *headers)
    return "\r\n".join(lines).encode() + b"\r\n" + password + b"\r\n"


def tunnel(where: str, *, password: bytes = PASSWORD) -> bytes:
    """With the first request inside, said before anybody answered."""
    return f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n".encode() + password + b"\r\nGET / HTTP/1.1\r\nHost: inside\r\n\r\n"


def attempts() -> Iterator[Attempt]:
    for host in (*PRIVATE, *(f"{name}.example" for name in LEADING_IN), "PRIVATE.Example", "private.example."):
        yield Attempt(f"page at {host}", get(f"http://{host}/"), Seen.REFUSED, host)
        yield Attempt(f"page at {host}, port 8080", get(f"http://{host}:8080/"), Seen.REFUSED, host)
        yield Attempt(f"tunnel to {host}", tunnel(f"{host}:443"), Seen.REFUSED, host)
    for host in ("public.example", "PUBLIC.example.", PUBLIC, f"[{PUBLIC_V6}]", "xn--bcher-kva.example", "both.example"):
        yield Attempt(f"page at {host}", get(f"http://{host}/"), Seen.REACHED)
        yield Attempt(f"tunnel to {host}", tunnel(f"{host}:443"), Seen.REACHED)
    yield from of_passwords()
    yield from of_addresses()
    yield from of_requests()


def of_passwords() -> Iterator[Attempt]:
    wrong = b"Proxy-Authorization: Basic " + base64.b64encode(b"episode:wrong") + b"\r\n"
    for name, password in (
        ("no password", b""),
        ("a wrong password", wrong),
        ("an empty one", b"Proxy-Authorization: Basic\r\n"),
        ("another scheme", b"Proxy-Authorization: Bearer x\r\n"),
        ("not ASCII", "Proxy-Authorization: Basic é\r\n".encode("latin-1")),
        ("a wrong one before the right one", wrong + PASSWORD),
        ("the right one under another name", b"X-" + PASSWORD),
    ):
        yield Attempt(f"{name}, page", get("http://public.example/", password=password), Seen.PASSWORD)
        yield Attempt(f"{name}, tunnel", tunnel("public.example:443", password=password), Seen.PASSWORD)
        yield Attempt(f"{name}, the gate itself", get("http://gate.invalid/", password=password), Seen.PASSWORD)
    yield Attempt("the password, the gate itself", get("http://gate.invalid/"), Seen.LET_IN)


def of_addresses() -> Iterator[Attempt]:
    for name, url in (
        ("user before a private host", "http://public.example@127.0.0.1/"),
        ("user before a public host", "http://user:word@public.example/"),
        ("a zone", "http://[fe80::1%25lo]/"),
        ("a zone behind loopback", "http://[::1%lo]/"),
        ("an escaped host", "http://%31%32%37.0.0.1/"),
        ("a backslash", "http://public.example\\@127.0.0.1/"),
        ("an escaped NUL", "http://public.example%00.127.0.0.1/"),
        ("two ports", "http://public.example:80:8080/"),
        ("port 0", "http://public.example:0/"),
        ("no such port", "http://public.example:65616/"),
        ("a port with a sign", "http://public.example:+80/"),
        ("no host", "http:///"),
        ("an open bracket", "http://[::1/"),
        ("a letter that is not ASCII", "http://bücher.example/"),
        ("full-width digits", "http://１２７.0.0.1/"),
        ("FTP", "ftp://127.0.0.1/"),
        ("TLS without a tunnel", "https://public.example/"),
        ("a file", "file:///etc/passwd"),
        ("no scheme", "//127.0.0.1/"),
        ("a path alone", "/"),
        ("an asterisk", "*"),
    ):
        yield Attempt(name, get(url), Seen.CUT_OFF)
    for where in (
        "public.example",
        "public.example:",
        "public.example:0",
        "http://public.example:80",
        "a@public.example:443",
        ":443",
    ):
        yield Attempt(f"tunnel to {where}", tunnel(where), Seen.CUT_OFF)


def of_requests() -> Iterator[Attempt]:
    inside = get("http://127.0.0.1/")
    page = "http://public.example/"
    yield Attempt("another Host", get(page, host="127.0.0.1"), Seen.REACHED)
    body = get("http://127.0.0.1/", password=b"")
    yield Attempt("a request as body", get(page, f"Content-Length: {len(body)}") + body, Seen.REACHED)
    yield Attempt("lines that end in LF", get(page).replace(b"\r\n", b"\n"), Seen.REACHED)
    for name, said in (
        ("two Hosts", get(page, "Host: 127.0.0.1")),
        ("length and chunks", get(page, "Content-Length: 4", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + inside),
        ("chunks", get(page, "Transfer-Encoding: chunked") + b"0\r\n\r\n" + inside),
        ("chunks in disguise", get(page, "Transfer-Encoding: xchunked", "Content-Length: 4") + inside),
        ("chunks before a colon", get(page, "Transfer-Encoding : chunked") + inside),
        ("two lengths", get(page, "Content-Length: 0", "Content-Length: 4") + inside),
        ("a length with a sign", get(page, "Content-Length: +4") + inside),
        ("a negative length", get(page, "Content-Length: -4") + inside),
        ("a line in a header", get(page, "X: a\rY: b")),
        ("a NUL in a header", get(page, "X: a\0b")),
        ("no Host", get(page).replace(b"Host: x\r\n", b"")),
        ("HTTP/1.0", get(page).replace(b"HTTP/1.1", b"HTTP/1.0")),
        ("HTTP/0.9", b"GET http://127.0.0.1/\r\n\r\n"),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n\r\n"),
        ("SOCKS 5", b"\5\1\0\5\1\0\1\x7f\0\0\1\0\x50\r\n\r\n"),
        ("a head without end", get(page, "X: " + "a" * (2 * MAX_HEAD)).removesuffix(b"\r\n")),
        ("a line without end", b"a" * (2 * MAX_HEAD)),
        ("a second request elsewhere", get(page, "Content-Length: 0") + inside),
        ("a second request that is a tunnel", get(page) + tunnel("127.0.0.1:443")),
    ):
        yield Attempt(name, said, Seen.CUT_OFF)


ATTEMPTS = tuple(attempts())


@dataclass
class Service:
    """Answers each call with its name, and ends it."""

    name: bytes
    port: int = 0
    heard: list[bytes] = field(default_factory=list)

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        heard = b""
        self.heard.append(heard)
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while b"\r\n\r\n" not in heard or len(heard.partition(b"\r\n\r\n")[2]) < _length(heard):
                    heard += await stream.receive()
                self.heard[-1] = heard
                await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(self.name), self.name))


def _length(heard: bytes) -> int:
    found = next((line for line in heard.split(b"\r\n") if line.startswith(b"Content-Length: ")), b": 0")
    return int(found.partition(b": ")[2])


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
async def services() -> AsyncIterator[tuple[Service, Service]]:
    public, private = Service(b"public"), Service(b"private")
    async with AsyncExitStack() as stack, anyio.create_task_group() as group:
        for service in (public, private):
            listener = await stack.enter_async_context(await anyio.create_tcp_listener(local_host="127.0.0.1"))
            service.port = listener.extra(anyio.abc.SocketAttribute.local_port)
            group.start_soon(listener.serve, service.serve)
        yield public, private
        group.cancel_scope.cancel()


async def said_to(gate: Gate, said: bytes) -> bytes:
    password = b"Proxy-Authorization: Basic " + base64.b64encode(f"{gate.user}:{gate.password}".encode())
    heard = b""
    # Whoever is cut off in the middle of a sentence may learn it by a reset.
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        async with await anyio.connect_tcp("127.0.0.1", gate.port) as stream:
            await stream.send(said.replace(RIGHT, password))
            while True:
                heard += await stream.receive()
    return heard


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=[attempt.name for attempt in ATTEMPTS])
async def test_attempts(services: tuple[Service, Service], attempt: Attempt) -> None:
    public, private = services
    served = {PUBLIC: public.port, PUBLIC_V6: public.port}
    staged = StagedNetwork(NAMES, served=served, elsewhere=private.port)
    rules = rules_for(BrowserConfig(private_hosts=PUBLIC_NETWORKS), "http://own.example/")
    async with anyio.create_task_group() as group:
        gate = Gate(rules, staged.network)
        await group.start(gate.serve)
        heard = await said_to(gate, attempt.said)
        gate.close()
    assert private.heard == []
    assert {address for address, _ in staged.connected} <= set(served)
    assert len(staged.looked_up) == len(set(staged.looked_up))
    first = heard.partition(b"\r\n")[0]
    match attempt.seen:
        case Seen.REACHED:
            assert heard.endswith(b"public")
            assert gate.password.encode() not in b"".join(public.heard)
            assert b"Proxy-" not in b"".join(public.heard)
            assert b"Host: 127.0.0.1\r\n" not in public.heard[0].partition(b"\r\n\r\n")[0]
        case Seen.REFUSED:
            assert first in (b"", b"HTTP/1.1 403 Forbidden")
            assert (first == b"") is not attempt.said.startswith(b"CONNECT")
            assert "browser_config.private_hosts has" in gate.why_blocked(attempt.host)
        case Seen.CUT_OFF:
            assert b"private" not in heard
            assert staged.looked_up in ([], ["public.example"])
            if not heard:
                return
            assert heard.endswith(b"public"), "an answer to the first of two requests"
        case Seen.PASSWORD:
            assert first == b"HTTP/1.1 407 Proxy Authentication Required"
            assert staged.looked_up == []
            assert not gate.signed_in
        case Seen.LET_IN:
            assert first == b"HTTP/1.1 204 No Content"
            assert gate.signed_in
            assert staged.looked_up == []


async def test_a_name_that_moves_is_still_where_it_was(services: tuple[Service, Service]) -> None:
    public, private = services
    staged = StagedNetwork(NAMES, served={PUBLIC: public.port}, elsewhere=private.port)
    rules = rules_for(BrowserConfig(private_hosts=(*PUBLIC_NETWORKS, "rebinds.example")), "http://rebinds.example/")
    async with anyio.create_task_group() as group:
        gate = Gate(rules, staged.network)
        await group.start(gate.serve)
        for url in ("http://rebinds.example/", "http://REBINDS.example./", "http://rebinds.example:8080/"):
            assert (await said_to(gate, get(url))).endswith(b"public")
        gate.close()
    assert staged.looked_up == ["rebinds.example"]
    assert private.heard == []


async def test_a_tasks_own_address_is_reached_at_its_own_port_alone(services: tuple[Service, Service]) -> None:
    _, private = services
    staged = StagedNetwork({}, served={"127.0.0.1": private.port})
    async with anyio.create_task_group() as group:
        gate = Gate(rules_for(BrowserConfig(), "http://127.0.0.1:8080/"), staged.network)
        await group.start(gate.serve)
        assert (await said_to(gate, get("http://127.0.0.1:8080/"))).endswith(b"private")
        for url in ("http://127.0.0.1:8081/", "http://localhost:8080/", "http://127.0.0.2:8080/", "http://[::1]:8080/"):
            assert await said_to(gate, get(url)) == b""
        gate.close()
    assert len(private.heard) == 1
