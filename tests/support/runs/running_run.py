"""A run's folder with its own server up and its streams created: what commands and examples are given to read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bus.jetstream import JetStreamBus, connect, create_topology
from bus.server import nats_server
from bus.topology import shared_queues, streams
from ops.config.loading import load_config
from ops.run.folder import RunFolder
from schemas.bus_config import BusConfig
from tests.contract.backends import SUBJECTS


@asynccontextmanager
async def running_run(path: Path) -> AsyncIterator[JetStreamBus]:
    """The bus of the administrator, on the run `test` in this folder."""
    folder, bus_config = RunFolder(path), BusConfig(run=SUBJECTS.run)
    folder.create(load_config("default", [f"bus_config.run={SUBJECTS.run}"]), needed_bytes=0)
    async with nats_server(folder.server, [bus_config]) as address, connect(address, SUBJECTS, bus_config, name="test") as bus:
        await create_topology(bus, streams(SUBJECTS, bus_config), shared_queues(SUBJECTS, bus_config, bus_config.rubrics))
        yield bus
