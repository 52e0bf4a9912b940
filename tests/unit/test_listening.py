"""Whoever listens goes on once the server knows of him, however long it takes to say so."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import anyio
import anyio.abc
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from bus.address import ServerAddress
from bus.background import background
from bus.jetstream import JetStreamBus, connection, retrying
from bus.jetstream.holdings import nowhere
from bus.jetstream.link import open_link
from bus.jetstream.micro import MicroService
from schemas.errors import BusUnavailable
from tests.contract.backends import CONFIG, SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
INFO = {"server_id": "s", "version": "2.12.0", "proto": 1, "headers": True, "max_payload": 1_000_000}
SERVICE = MicroService(
    name="s", id="1", version="1.0.0", description="", metadata={}, endpoint="e", subject="here", answer=bytes, status=dict
)


class LateServer:
    """Answers pings that come behind a subscription to `here` all together, once there are as many as `most`."""

    def __init__(self, most: float) -> None:
        self.is_known = False
        self._most = most

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        is_there, num_pings, lines = False, 0, BufferedByteReceiveStream(stream)
        async with stream:
            with suppress(anyio.IncompleteRead, anyio.BrokenResourceError):
                await stream.send(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
                while True:
                    match (await lines.receive_until(b"\r\n", 2**16)).split():
                        case [b"SUB", b"here", _]:
                            is_there = True
                        case [b"PING"]:
                            num_pings += 1
                            if not is_there or self.is_known or num_pings >= self._most:
                                self.is_known = is_there
                                await stream.send(b"PONG\r\n" * num_pings)
                                num_pings = 0


@asynccontextmanager
async def bus_at(late: LateServer, *, timeout_s: float) -> AsyncIterator[JetStreamBus]:
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        background(lambda: listener.serve(late.serve)),
    ):
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with open_link(ServerAddress(f"nats://127.0.0.1:{port}"), "test") as link:
            yield JetStreamBus(link, SUBJECTS, replace(CONFIG, request_timeout_s=timeout_s), nowhere())


@pytest.mark.parametrize("way", ["listen", "offers", "serve"])
async def test_whoever_listens_is_known_to_the_server(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(connection, "_PING_S", 2 * HANGS_S)
    monkeypatch.setattr(retrying, "_FIRST_S", 0.1)
    late = LateServer(most=4)
    with anyio.fail_after(HANGS_S):
        async with bus_at(late, timeout_s=HANGS_S) as bus:
            ways = {"listen": bus.listen("here"), "offers": bus.offers("here", bool), "serve": bus.serve(SERVICE)}
            async with ways[way]:
                assert late.is_known


async def test_that_the_server_never_says_so_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_PING_S", 2 * HANGS_S)
    async with bus_at(LateServer(most=float("inf")), timeout_s=0.1) as bus:
        with pytest.raises(BusUnavailable, match="listening to here failed"):
            async with bus.listen("here"):
                pytest.fail("the server does not know of us")
