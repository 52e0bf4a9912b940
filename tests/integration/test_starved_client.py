"""A process that could not run for a while: what it had begun goes on when it runs again, and its connection comes back."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest
from anyio.abc import SocketAttribute
from nats.aio.client import Client

from bus.address import ServerAddress
from bus.jetstream import connect, connection, create_topology
from bus.jetstream.transport import Transport
from bus.ports import Expect
from bus.server import nats_server
from bus.topology import streams
from ops.drills.proxy import tcp_proxy
from schemas.errors import BusUnavailable
from schemas.ids import PolicyVersion
from schemas.messages import EpisodeCancel
from tests.builders import checkpoint
from tests.contract.backends import CONFIG, QUEUES, SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
LARGE, NUM_LARGE = "x" * 2**20, 24
"""More than the sockets on the way hold."""
HELD_UP_S = 4 * 3 * CONFIG.request_timeout_s
"""Several times what an operation may take."""


def hold_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an event loop finds that could not run: its clock has gone on, and nothing else."""
    loop = asyncio.get_running_loop()
    before = loop.time
    monkeypatch.setattr(loop, "time", lambda: before() + HELD_UP_S)


async def test_time_in_which_nothing_could_be_tried_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop is held up, for longer than an operation may take, while a request is on its way."""
    subject = SUBJECTS.checkpoint(PolicyVersion(1))
    async with (
        nats_server(tmp_path) as address,
        connect(address, SUBJECTS, CONFIG, name="witness") as witness,
        connect(address, SUBJECTS, CONFIG, name="starved") as bus,
    ):
        await create_topology(witness, streams(SUBJECTS, CONFIG), QUEUES)
        publish = bus._link.publish

        async def send_and_stand_still(*given: Any, **named: Any) -> None:
            monkeypatch.setattr(bus._link, "publish", publish)
            await publish(*given, **named)
            hold_up(monkeypatch)

        monkeypatch.setattr(bus._link, "publish", send_and_stand_still)
        await bus.append(SUBJECTS.checkpoints, subject, checkpoint(1), expect=Expect(subject, 0))
        assert bus._link.publish == publish
        assert await witness.last_seq(SUBJECTS.checkpoints) == 1


async def test_a_connection_that_died_without_a_word_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some middle box forgot it, with bytes of ours unsent: whoever waits for them to go waits for a quarter of an hour."""
    monkeypatch.setattr(connection, "_PING_S", 0.1)
    subject = SUBJECTS.checkpoint(PolicyVersion(1))
    async with nats_server(tmp_path) as address, tcp_proxy(int(address.url.rpartition(":")[2])) as proxy:
        async with connect(address, SUBJECTS, CONFIG, name="witness") as witness:
            await create_topology(witness, streams(SUBJECTS, CONFIG), QUEUES)
        proxied = replace(address, url=f"nats://127.0.0.1:{proxy.port}", file=None)
        async with connect(proxied, SUBJECTS, CONFIG, name="forgotten") as bus:
            proxy.silence()
            proxy.is_silent = False  # those that come now are carried
            with anyio.fail_after(HANGS_S):
                for _ in range(NUM_LARGE):
                    await bus.tell(SUBJECTS.cancel, EpisodeCancel(episodes=(), reason=LARGE))
                await bus.append(SUBJECTS.checkpoints, subject, checkpoint(1), expect=Expect(subject, 0))


async def test_closing_leaves_no_socket_where_nobody_takes_what_is_unsent(tmp_path: Path) -> None:
    async with nats_server(tmp_path) as address, tcp_proxy(int(address.url.rpartition(":")[2])) as proxy:
        async with connect(address, SUBJECTS, CONFIG, name="witness") as witness:
            await create_topology(witness, streams(SUBJECTS, CONFIG), QUEUES)
        proxied = replace(address, url=f"nats://127.0.0.1:{proxy.port}", file=None)
        async with connect(proxied, SUBJECTS, CONFIG, name="leaving") as bus:
            proxy.silence()
            for _ in range(NUM_LARGE):
                await bus.tell(SUBJECTS.cancel, EpisodeCancel(episodes=(), reason=LARGE))
            assert _connections_to(proxy.port)
        with anyio.fail_after(HANGS_S):
            while _connections_to(proxy.port):  # noqa: ASYNC110  # the kernel tells nobody
                await anyio.sleep(0.01)


def _connections_to(port: int) -> list[int]:
    """The descriptors of this process that are connected there."""
    connections = psutil.Process().net_connections("tcp")
    return [each.fd for each in connections if each.status == psutil.CONN_ESTABLISHED and each.raddr[1:] == (port,)]


async def test_a_client_that_has_ended_its_trying_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an error that it does not expect the library's task dies, and says nothing."""
    subject = SUBJECTS.checkpoint(PolicyVersion(1))
    async with nats_server(tmp_path) as address, tcp_proxy(int(address.url.rpartition(":")[2])) as proxy:
        async with connect(address, SUBJECTS, CONFIG, name="witness") as witness:
            await create_topology(witness, streams(SUBJECTS, CONFIG), QUEUES)
        proxied = replace(address, url=f"nats://127.0.0.1:{proxy.port}", file=None)
        async with connect(proxied, SUBJECTS, CONFIG, name="ended") as bus:
            with monkeypatch.context() as patch:
                ended = anyio.Event()

                async def dies(client: Client) -> None:
                    ended.set()
                    raise RuntimeError("nobody expects this")

                patch.setattr(Client, "_select_next_server", dies)
                proxy.cut()
                await ended.wait()
            await bus.append(SUBJECTS.checkpoints, subject, checkpoint(1), expect=Expect(subject, 0))


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_what_is_sent_over_a_connection_that_is_just_closed_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvloop says so with an error that the library does not expect, whose sending then ends without a word."""
    monkeypatch.setattr(connection, "_LOOK_S", HANGS_S)  # who looks would see it before it is sent over
    subject = SUBJECTS.checkpoint(PolicyVersion(1))
    async with nats_server(tmp_path) as address, connect(address, SUBJECTS, CONFIG, name="closed") as bus:
        await create_topology(bus, streams(SUBJECTS, CONFIG), QUEUES)
        client = bus._link._client
        transport = client._transport
        assert isinstance(transport, Transport)
        # Nothing is heard of the end: the next to send notices it.
        assert client._reading_task is not None
        client._reading_task.cancel()
        transport.abort()
        await anyio.sleep(0.05)
        with anyio.fail_after(HANGS_S):
            await bus.append(SUBJECTS.checkpoints, subject, checkpoint(1), expect=Expect(subject, 0))
        assert client._flusher_task is not None
        assert not client._flusher_task.done()


async def test_a_process_that_stands_still_while_it_connects_is_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_CONNECT_S", 0.9 * HELD_UP_S)
    reach = Transport.connect

    async def stand_still_and_reach(*given: Any, **named: Any) -> None:
        monkeypatch.setattr(Transport, "connect", reach)
        await anyio.lowlevel.checkpoint()  # the deadline has begun
        hold_up(monkeypatch)
        await reach(*given, **named)

    async with nats_server(tmp_path) as address:
        monkeypatch.setattr(Transport, "connect", stand_still_and_reach)
        async with connect(address, SUBJECTS, CONFIG, name="starved") as bus:
            await bus.tell(SUBJECTS.cancel, EpisodeCancel(episodes=(), reason=""))
    assert Transport.connect is reach


async def test_a_server_that_greets_late_is_given_more_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At first, and when the connection is lost."""
    monkeypatch.setattr(connection, "_GREETING_S", 1e-4)
    monkeypatch.setattr(connection, "_CONNECT_S", HANGS_S)
    subject = SUBJECTS.checkpoint(PolicyVersion(1))
    async with nats_server(tmp_path) as address, tcp_proxy(int(address.url.rpartition(":")[2])) as proxy:
        proxied = replace(address, url=f"nats://127.0.0.1:{proxy.port}", file=None)
        async with connect(proxied, SUBJECTS, CONFIG, name="late") as bus:
            await create_topology(bus, streams(SUBJECTS, CONFIG), QUEUES)
            proxy.cut()
            with anyio.fail_after(HANGS_S):
                await bus.append(SUBJECTS.checkpoints, subject, checkpoint(1), expect=Expect(subject, 0))


async def test_a_server_that_never_greets_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_CONNECT_S", 0.3)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as deaf:
        address = ServerAddress(f"nats://127.0.0.1:{deaf.extra(SocketAttribute.local_port)}")
        with anyio.fail_after(HANGS_S), pytest.raises(BusUnavailable, match="no NATS server answers"):
            async with connect(address, SUBJECTS, CONFIG, name="unheard"):
                pass
