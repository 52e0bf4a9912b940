"""A run's own server, for commands that read a run which may have ended: started for the while when it is not up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bus.server import is_served, nats_server
from ops.roles import runs_of
from ops.run_folder import RunFolder
from schemas.config import Config


@asynccontextmanager
async def served(folder: RunFolder, config: Config) -> AsyncIterator[None]:
    if config.bus_config.url or is_served(folder.server):
        yield
        return
    async with nats_server(folder.server, runs_of(config.bus_config)):
        yield
