"""A server whose store is full: writers wait and say so, leases hold, and everything goes on when there is room."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
import structlog
from structlog.typing import EventDict

from bus.chain import publish_trajectory
from bus.jetstream import JetStreamBus, connect, create_topology
from bus.ports import Delivery
from bus.presence import presence
from bus.server import server_process
from bus.server.embedded import _room_for
from bus.topology import streams, task_queue
from schemas.errors import StreamFull
from schemas.messages import Role, Split
from tests.builders import WORKER, task, trajectory
from tests.contract.backends import CONFIG, QUEUES, SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.leases import renewed_often

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
MIB = 1024 * 1024
QUEUE = task_queue(SUBJECTS, CONFIG, Split.TRAIN)


@asynccontextmanager
async def small_store(folder: Path) -> AsyncIterator[JetStreamBus]:
    async with (
        server_process(folder, [CONFIG], max_store_bytes=2 * MIB) as server,
        connect(server.address, SUBJECTS, CONFIG, name="test") as bus,
    ):
        await create_topology(bus, streams(SUBJECTS, CONFIG), QUEUES)
        yield bus


async def fill(bus: JetStreamBus) -> None:
    """Queues large tasks until the server takes no more."""
    with contextlib.suppress(StreamFull):
        for index in range(100):
            large = msgspec.structs.replace(task(f"t{index}"), instruction="x" * (MIB // 4))
            await bus.append(SUBJECTS.tasks, SUBJECTS.task(Split.TRAIN, large.episode), large)
        pytest.fail("never full")


async def make_room(bus: JetStreamBus) -> None:
    async with bus.work(QUEUE, prefetch=0) as inbox:
        for _ in range(3):
            delivery: Delivery = await anext(inbox)
            await delivery.ack()


async def logged(logs: list[EventDict], is_wanted: Callable[[EventDict], bool]) -> None:
    with anyio.fail_after(HANGS_S):
        while not any(is_wanted(log) for log in logs):  # noqa: ASYNC110 - a log has no event
            await anyio.sleep(0.01)


async def test_writers_wait_and_say_so_and_go_on_when_there_is_room(tmp_path: Path) -> None:
    ended = trajectory(task("writer"))
    async with small_store(tmp_path) as bus, presence(bus, SUBJECTS, Role.BROWSER, WORKER) as status:
        await fill(bus)
        with structlog.testing.capture_logs() as logs:
            async with anyio.create_task_group() as group:
                group.start_soon(publish_trajectory, bus, SUBJECTS, ended)
                await logged(logs, lambda log: log["event"] == "stream_full_waiting")
                assert status.heartbeat(0.0).note == f"waits for room in {SUBJECTS.trajectories}"
                await make_room(bus)
        assert "stream_has_room" in [log["event"] for log in logs]
        assert status.heartbeat(0.0).note == ""
        record = await bus.last(SUBJECTS.trajectories, SUBJECTS.everything("trajectory"))
        assert record is not None
        assert record.message == ended


async def test_a_lease_holds_while_there_is_no_room_for_its_renewal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ttl_s = renewed_often(monkeypatch)
    async with small_store(tmp_path) as bus, bus.lease("feeder", ttl_s=ttl_s) as lease, anyio.create_task_group() as group:
        lost = anyio.Event()

        async def watch() -> None:
            await lease.wait_lost()
            lost.set()

        group.start_soon(watch)
        await fill(bus)
        with structlog.testing.capture_logs() as logs:
            await logged(logs, lambda log: log["event"] in ("lease_not_renewed_yet", "lease_lost"))
        claimed = await bus.last_seq(SUBJECTS.leases)
        await make_room(bus)
        with anyio.fail_after(HANGS_S):
            while await bus.last_seq(SUBJECTS.leases) == claimed:  # noqa: ASYNC110 - a stream's end has no event
                await anyio.sleep(0.01)
        assert not lost.is_set()
        group.cancel_scope.cancel()


async def test_a_lease_is_waited_for_while_there_is_no_room(tmp_path: Path) -> None:
    async with small_store(tmp_path) as bus, anyio.create_task_group() as group:
        await fill(bus)
        held = anyio.Event()

        async def take() -> None:
            async with bus.lease("feeder", ttl_s=1.0):
                held.set()

        with structlog.testing.capture_logs() as logs:
            group.start_soon(take)
            await logged(logs, lambda log: log["event"] == "lease_awaits_room")
        await make_room(bus)
        with anyio.fail_after(HANGS_S):
            await held.wait()


async def test_the_store_may_take_what_the_disk_has_but_for_a_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "jetstream"
    (store / "blocks").mkdir(parents=True)
    (store / "blocks" / "1.blk").write_bytes(bytes(MIB))
    disk = type("Disk", (), {"free": 1024 * MIB})
    monkeypatch.setattr("shutil.disk_usage", lambda _: disk)
    assert _room_for(store) == (1024 + 1 - 256) * MIB
    async with server_process(tmp_path, [CONFIG]):
        assert f"max_file_store: {769 * MIB}" in (tmp_path / "nats.conf").read_text()
