"""What a server sends until it has read that nobody listens any more is heard; so is what it sends later, to others."""

import asyncio
import json
from collections import deque

import anyio
import pytest
from nats.aio.msg import Msg

from bus.address import ServerAddress
from bus.jetstream import connection
from bus.jetstream.link import open_link
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
INFO = {"server_id": "s", "version": "2.12.0", "proto": 1, "headers": True, "max_payload": 1_000_000}


class LateServer:
    """Reads the end of a subscription a round trip late, and sends one message more before."""

    def __init__(self) -> None:
        self.num_unsubscribed = 0

    @staticmethod
    async def _round_trip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> list[bytes]:
        """What came meanwhile."""
        writer.write(b"PING\r\n")
        came = list[bytes]()
        while (line := await reader.readline()) not in (b"PONG\r\n", b""):
            came.append(line)
        return came

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
        subjects = dict[bytes, bytes]()
        lines = deque[bytes]()
        while line := lines.popleft() if lines else await reader.readline():
            match line.split():
                case [b"PING"]:
                    writer.write(b"PONG\r\n")
                case [b"SUB", subject, sid]:
                    subjects[sid] = subject
                case [b"UNSUB", sid] if sid in subjects:
                    lines += await self._round_trip(reader, writer)
                    writer.write(b"MSG %s %s 4\r\nlast\r\n" % (subjects.pop(sid), sid))
                    self.num_unsubscribed += 1
        writer.close()


async def test_the_last_message_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.jetstream.subscriptions.CLOSING_S", HANGS_S)
    heard, late = list[Msg](), LateServer()
    server = await asyncio.start_server(late.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        with anyio.fail_after(HANGS_S):
            async with open_link(ServerAddress(f"nats://{host}:{port}"), "test") as link:
                feed = await link.subscribe(link.new_inbox(), heard.append)
                await link.unsubscribe(feed)
    finally:
        server.close()
        await server.wait_closed()
    assert late.num_unsubscribed == 1
    assert [message.data for message in heard] == [b"last"]


async def test_a_pong_that_nobody_waits_for_any_more_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the client would be deaf until the pings that follow have been in vain: here, for ever."""
    monkeypatch.setattr(connection, "_PING_S", 2 * HANGS_S)
    asked, go_on = anyio.Event(), anyio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
        num_pings = 0
        while line := await reader.readline():
            match line.split():
                case [b"PING"]:
                    num_pings += 1
                    if num_pings == 2:
                        asked.set()
                        await go_on.wait()
                    writer.write(b"PONG\r\n")
                case [b"SUB", subject, sid]:
                    writer.write(b"MSG %s %s 4\r\nlast\r\n" % (subject, sid))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        with anyio.fail_after(HANGS_S):
            async with open_link(ServerAddress(f"nats://{host}:{port}"), "test") as link:
                client = link._client
                async with anyio.create_task_group() as group:
                    group.start_soon(link.round_trip, HANGS_S)
                    await asked.wait()
                    group.cancel_scope.cancel()
                go_on.set()
                heard = anyio.Event()
                await link.subscribe(link.new_inbox(), lambda _: heard.set())
                await heard.wait()
                assert link._client is client
    finally:
        server.close()
        await server.wait_closed()
