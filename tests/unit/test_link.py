"""A connection that never comes about leaves nothing behind, and says why."""

import socket
import struct
from contextlib import suppress
from pathlib import Path
from urllib.parse import ParseResult

import anyio
import anyio.abc
import pytest
from structlog.testing import capture_logs

from bus.address import ServerAddress
from bus.jetstream import connection
from bus.jetstream.link import open_link
from bus.jetstream.transport import Transport
from bus.server import nats_server
from schemas.errors import BusUnavailable, NotPermitted
from tests.deadlines import HANGS_S
from tests.support.closed_port import closed_port

pytestmark = pytest.mark.anyio


async def test_a_cancelled_attempt_closes_its_socket() -> None:
    accepted, closed = anyio.Event(), anyio.Event()

    async def say_nothing(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            accepted.set()
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()
            closed.set()

    async def connect(address: ServerAddress) -> None:
        async with open_link(address, "test"):
            pytest.fail("nobody greeted us")

    with anyio.fail_after(HANGS_S):
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            group.start_soon(listener.serve, say_nothing)
            async with anyio.create_task_group() as attempt:
                attempt.start_soon(connect, ServerAddress(f"nats://127.0.0.1:{port}"))
                await accepted.wait()
                attempt.cancel_scope.cancel()
            await closed.wait()
            group.cancel_scope.cancel()


@pytest.mark.parametrize("later", ["reset", "not greeted in time"])
async def test_a_refused_key_is_said_whatever_comes_of_later_attempts(later: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_CONNECT_S", 1.5)
    for name in ("_GREETING_S", "_LONGEST_GREETING_S"):
        monkeypatch.setattr(connection, name, HANGS_S)  # so that the first attempt is refused, however full the machine
    num_tried = num_accepted = 0

    class Tried(Transport):
        async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
            nonlocal num_tried
            num_tried += 1
            if num_tried > 1 and later != "reset":
                raise TimeoutError
            await super().connect(uri, buffer_size, connect_timeout)

    monkeypatch.setattr(connection, "Transport", Tried)

    async def refuse(stream: anyio.abc.SocketStream) -> None:
        nonlocal num_accepted
        num_accepted += 1
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):  # at the end it is left
                await stream.send(
                    b'INFO {"server_id":"x","version":"2.15.1","max_payload":1000,"auth_required":true,"nonce":"n"}\r\n'
                )
                await stream.receive()
                if num_accepted == 1:
                    await stream.send(b"-ERR 'Authorization Violation'\r\n")
            if num_accepted > 1:
                raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with anyio.fail_after(HANGS_S):
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            group.start_soon(listener.serve, refuse)
            with pytest.raises(NotPermitted, match="refuses the key"):
                async with open_link(ServerAddress(f"nats://127.0.0.1:{port}"), "stranger"):
                    pytest.fail("we were let in")
            group.cancel_scope.cancel()
    assert num_tried > 1


@pytest.mark.parametrize("starting", [False, True])
async def test_that_no_server_answers_is_said_once_and_not_of_one_that_is_being_started(
    starting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_CONNECT_S", 1.5)
    with closed_port() as port, capture_logs() as logs:
        address = ServerAddress(f"nats://127.0.0.1:{port}")
        with pytest.raises(BusUnavailable, match="no NATS server answers"):
            async with open_link(address, "test", starting=starting):
                pytest.fail("nobody listens")
    said = [(entry["event"], entry["url"]) for entry in logs]
    assert said == ([] if starting else [("server_not_reached", address.url)])


async def test_a_client_that_reads_no_more_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library ends its reading at any error that it does not expect, and goes on saying that it is connected."""
    monkeypatch.setattr(connection, "_PING_S", 2 * HANGS_S)
    async with nats_server(tmp_path) as address, open_link(address, "test") as link:
        deaf = link._client
        assert deaf._reading_task is not None
        deaf._reading_task.cancel()
        with anyio.fail_after(HANGS_S):
            while link._client is deaf or not link.is_up:  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.05)
            heard = anyio.Event()
            inbox = link.new_inbox()
            await link.subscribe(inbox, lambda _: heard.set())
            await link._client.publish(inbox, b"still here")
            await heard.wait()
