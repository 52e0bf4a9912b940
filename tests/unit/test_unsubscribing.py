"""What a server sends up to the moment in which it reads that nobody listens any more is heard."""

import asyncio
import json
from collections import deque

import anyio
import pytest
from nats.aio.msg import Msg

from bus.address import ServerAddress
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


async def test_the_last_message_is_heard() -> None:
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
