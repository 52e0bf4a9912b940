"""What a browser says to its gate, read piece by piece."""

import pytest

from browser_workers.network.requests import MAX_HEAD, Malformed, Reader, Request, Target

PAGE = (
    b"POST http://a.example:8080?x=1 HTTP/1.1\r\nHost: elsewhere\r\nProxy-Connection: keep-alive\r\nContent-Length: 5\r\n"
    b"Proxy-Authorization: Basic eA==\r\nCookie: a=1\r\nX-Y: z\r\n\r\n"
)
HEAD = (
    b"POST /?x=1 HTTP/1.1\r\nHost: a.example:8080\r\nConnection: keep-alive\r\nContent-Length: 5\r\n"
    b"Cookie: a=1\r\nX-Y: z\r\n\r\n"
)


def test_a_request_comes_byte_by_byte() -> None:
    reader = Reader()
    taken = []
    for byte in PAGE + b"12345" + PAGE:
        reader.feed(bytes((byte,)))
        taken.append(reader.take())
    pieces = [piece for piece in taken if piece is not None]
    asked = Request(Target("a.example", 8080), is_tunnel=False, credentials=b"Basic eA==", head=HEAD)
    assert pieces == [asked, b"1", b"2", b"3", b"4", b"5", asked]


def test_all_of_it_may_come_at_once() -> None:
    reader = Reader()
    reader.feed(PAGE + b"12345" + PAGE + b"12")
    first, body, second, more = (reader.take() for _ in range(4))
    assert first == second
    assert (body, more, reader.take(), reader.num_held) == (b"12345", b"12", None, 0)


def test_a_tunnels_bytes_are_not_read() -> None:
    reader = Reader()
    reader.feed(b"CONNECT [::1]:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nanything")
    assert reader.take() == Request(Target("[::1]", 443), is_tunnel=True, credentials=b"", head=b"")
    assert reader.take_all() == b"anything"


def test_what_one_hop_says_to_the_next_stays_here() -> None:
    reader = Reader()
    spoken = (b"Connection: upgrade", b"Upgrade: h2c", b"HTTP2-Settings: x", b"TE: trailers", b"Keep-Alive: 5", b"Trailer: x")
    reader.feed(b"\r\n".join((b"GET http://a.example/ HTTP/1.1", b"Host: a.example", *spoken, b"", b"")))
    request = reader.take()
    assert isinstance(request, Request)
    assert request.head == b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n"


def test_a_head_has_a_bound() -> None:
    reader = Reader()
    reader.feed(b"GET http://a.example/ HTTP/1.1\r\nX: " + b"a" * (MAX_HEAD - 100))
    assert reader.take() is None
    reader.feed(b"a" * 200)
    with pytest.raises(Malformed):
        reader.take()
