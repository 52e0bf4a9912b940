"""A write whose answer is lost: what became of it is found out, however long the server is away and whoever asks again."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest
import structlog
from structlog.typing import EventDict, WrappedLogger

from bus.address import ServerAddress
from bus.jetstream import JetStreamBus, connect, create_topology
from bus.jetstream.retrying import RetryLimits
from bus.retry import Backoff
from bus.server import ServerProcess, server_process
from bus.server.ports import held_port
from bus.topology import streams
from bus.trying import Tries
from ops.drills.proxy import TcpProxy, tcp_proxy
from schemas.bus_config import BusConfig
from tests.builders import checkpoint
from tests.contract.backends import CONFIG, QUEUES, SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.abandoned_sockets import abandoned_sockets
from tests.support.bus.leases import renewed_often
from trainer.versions.announcements import Announcements

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.integration,
    # nats-py leaves the socket of a connection that was cut during its handshake to the garbage collector.
    abandoned_sockets,
]
IMPATIENT = replace(CONFIG, request_timeout_s=0.5)
"""An operation gives up after 1.5 seconds: what takes half a minute, in less time. A busy machine answers within it."""
NUM_GIVEN_UP = 4


@dataclass
class World:
    """A server that can be taken away; a bus that reaches it through a proxy, and a witness's that does not."""

    folder: Path
    port: int
    """The server's, whenever it is there."""
    running: AsyncExitStack = field(default_factory=AsyncExitStack)
    process: ServerProcess | None = None
    proxy: TcpProxy = field(init=False)
    bus: JetStreamBus = field(init=False)
    witness: JetStreamBus = field(init=False)

    async def start(self) -> ServerAddress:
        self.process = await self.running.enter_async_context(server_process(self.folder, port=self.port))
        return self.process.address

    async def kill(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        await self.process.wait_dead()
        await self.running.aclose()


@asynccontextmanager
async def world(folder: Path, config: BusConfig = IMPATIENT) -> AsyncIterator[World]:
    """`config`: of the bus that reaches the server through the proxy."""
    with held_port() as port:
        on = World(folder, port)
        try:
            address = await on.start()
            async with (
                tcp_proxy(port) as on.proxy,
                connect(address, SUBJECTS, CONFIG, name="witness") as on.witness,
                connect(
                    replace(address, url=f"nats://127.0.0.1:{on.proxy.port}", file=None), SUBJECTS, config, name="proxied"
                ) as on.bus,
            ):
                await create_topology(on.witness, streams(SUBJECTS, CONFIG), QUEUES)
                yield on
        finally:
            await on.running.aclose()


class Heard:
    """Counts the log's events of one name, and lets them be waited for."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._more = anyio.Event()
        self.count = 0

    def __call__(self, logger: WrappedLogger, method: str, entry: EventDict) -> EventDict:
        if entry["event"] == self._event:
            self.count += 1
            self._more.set()
        raise structlog.DropEvent

    async def reaches(self, count: int) -> None:
        with anyio.fail_after(HANGS_S):
            while self.count < count:
                self._more = anyio.Event()
                await self._more.wait()


@contextmanager
def heard(event: str) -> Iterator[Heard]:
    before, found = structlog.get_config()["processors"], Heard(event)
    structlog.configure(processors=[found])
    try:
        yield found
    finally:
        structlog.configure(processors=before)


async def grows(bus: JetStreamBus, stream: str, subject_filter: str, *, behind: int) -> int:
    """The sequence of the next record there."""
    with anyio.fail_after(HANGS_S):
        async for _ in Tries(Backoff(0.02, 0.02)):
            # A claim is no message, so that no tail hears of it.
            if found := await bus.read_bytes(stream, subject_filter, after_seq=behind):
                return found[0].seq
    raise AssertionError("the rounds never end")


async def test_an_announcement_outlives_a_server_that_is_away_between_store_and_answer(tmp_path: Path) -> None:
    """The operation gives up several times meanwhile, so the announcement is another call when the server is back."""
    with heard("bus_awaited") as given_up:
        async with world(tmp_path) as on, anyio.create_task_group() as group:
            on.proxy.is_deaf = True
            group.start_soon(Announcements(on.bus, SUBJECTS).announce, checkpoint(1))
            await grows(on.witness, SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"), behind=0)
            await on.proxy.refuse()
            await on.kill()
            await given_up.reaches(given_up.count + NUM_GIVEN_UP)
            on.proxy.is_deaf = False
            await on.start()
            await on.proxy.listen()
    # The group has ended: it was announced, by nobody else.


async def test_a_lease_is_not_lost_over_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewal that was stored is the holder's own, whichever try finds that out."""
    ttl_s = renewed_often(monkeypatch)
    with heard("lease_not_renewed_yet") as given_up:
        async with (
            world(tmp_path, CONFIG) as on,
            on.bus.lease("feeder", ttl_s=ttl_s) as lease,
            anyio.create_task_group() as group,
        ):

            async def watch() -> None:
                await lease.wait_lost()
                pytest.fail("the lease is lost over its own renewal")

            group.start_soon(watch)
            # From here on: a machine that is busy may take longer until the lease is had.
            on.bus._appender.limits = RetryLimits(IMPATIENT.request_timeout_s, 3 * IMPATIENT.request_timeout_s)
            subject = SUBJECTS.lease("feeder")
            claimed = await on.witness.last_seq(SUBJECTS.leases)
            on.proxy.is_deaf = True
            renewed = await grows(on.witness, SUBJECTS.leases, subject, behind=claimed)
            await given_up.reaches(1)
            on.proxy.is_deaf = False
            on.proxy.cut()
            await grows(on.witness, SUBJECTS.leases, subject, behind=renewed)
            group.cancel_scope.cancel()
