"""A server that lost power: what was not on its disk yet is gone, and whoever lives on goes on."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskStatus

from bus.address import ServerAddress
from bus.background import background
from bus.consumer.position import DurablePlace
from bus.consumer.start import BEGINNING
from bus.jetstream import connect, create_topology
from bus.jetstream.bus import JetStreamBus
from bus.lineage import Lineage, catch_up
from bus.ports import Record
from bus.server import nats_server
from bus.topology import streams
from schemas.messages import Position
from tests.builders import checkpoint, task
from tests.contract.backends import CONFIG, SUBJECTS
from tests.deadlines import HANGS_S
from trainer.feeding.feeder_records import FeederRecords
from trainer.versions.announcements import Announcements

pytestmark = pytest.mark.anyio
LOST, LAST = 3, 5


@dataclass(frozen=True)
class Disk:
    """What is on it while no server runs."""

    folder: Path

    @property
    def server(self) -> Path:
        return self.folder / "server"

    def sync(self) -> None:
        shutil.copytree(self.server / "jetstream", self.folder / "synced")

    def lose(self) -> None:
        shutil.rmtree(self.server / "jetstream")
        shutil.copytree(self.folder / "synced", self.server / "jetstream")


class Server:
    """In a task of its own: those who live on have contexts that began while it ran."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told, self._gone = anyio.Event(), anyio.Event()

    async def serve(self, *, task_status: TaskStatus[ServerAddress]) -> None:
        async with nats_server(self._folder) as address:
            task_status.started(address)
            await self._told.wait()
        self._gone.set()

    async def end(self) -> None:
        self._told.set()
        await self._gone.wait()


async def passed(place: DurablePlace, seq: int) -> None:
    place.passed(Record(SUBJECTS.trajectories, "", seq, task(), 1.0))
    await place.write()


async def claimed(bus: JetStreamBus) -> DurablePlace:
    place = DurablePlace(bus, SUBJECTS, "mine")
    await place.claim((SUBJECTS.trajectories,), BEGINNING)
    return place


async def test_who_lives_on_goes_on(tmp_path: Path) -> None:
    disk, followed, seen = Disk(tmp_path), Lineage(), {LOST: anyio.Event(), LAST: anyio.Event()}

    async def follow(bus: JetStreamBus) -> None:
        async with bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
            async for record in records:
                if followed.takes(record) and followed.newest is not None and (event := seen.get(followed.newest.version)):
                    event.set()

    async with nats_server(disk.server) as address, connect(address, SUBJECTS, CONFIG, name="admin") as bus:
        await create_topology(bus, streams(SUBJECTS, CONFIG), ())
        for version in (0, 1):
            await Announcements(bus, SUBJECTS).announce(checkpoint(version))
        await claimed(bus)
        await FeederRecords(bus, SUBJECTS).claim()
    disk.sync()

    async with anyio.create_task_group() as group:
        server = Server(disk.server)
        address = await group.start(server.serve)
        patient = replace(CONFIG, request_timeout_s=HANGS_S)
        async with connect(address, SUBJECTS, patient, name="living") as bus, background(lambda: follow(bus)):
            trainer, paged, feeder = Announcements(bus, SUBJECTS), Lineage(), FeederRecords(bus, SUBJECTS)
            for version in (2, LOST):
                await trainer.announce(checkpoint(version))
            await catch_up(paged, bus, SUBJECTS)
            place = await claimed(bus)
            await passed(place, 1)
            memory = await feeder.claim()
            assert memory is not None
            with anyio.fail_after(HANGS_S):
                await seen[LOST].wait()
            await server.end()
            disk.lose()
            async with nats_server(disk.server):
                with anyio.fail_after(HANGS_S):
                    await passed(place, 2)
                    assert await feeder.write(memory)
                    for version in (4, LAST):
                        await trainer.announce(checkpoint(version))
                    await seen[LAST].wait()
                await catch_up(paged, bus, SUBJECTS)
                anew = await catch_up(Lineage(), bus, SUBJECTS)
                assert [list(each.known) for each in (followed, paged, anew)] == [list(range(LAST + 1))] * 3
                record = await bus.last(SUBJECTS.positions, SUBJECTS.position("mine"))
                assert record is not None
                assert isinstance(record.message, Position)
                assert record.message.sequences[SUBJECTS.trajectories] == 2
