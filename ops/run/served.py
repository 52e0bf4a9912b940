"""A run's own server, for commands that read a run which may have ended: started for the while when it is not up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bus.server import address_of, is_served, nats_server
from ops.run.folder import RunFolder
from ops.run.joining import runs_of
from ops.run.streams import create_streams
from schemas.config import Config


@asynccontextmanager
async def served(folder: RunFolder, config: Config) -> AsyncIterator[None]:
    """The server is up while the context is open, with the run's streams, also when no server has run there before."""
    if config.bus_config.url or is_served(folder.server):
        yield
        return
    runs = runs_of(config.bus_config)
    async with nats_server(folder.server, runs):
        for run in runs:
            await create_streams(address_of(folder.server, run=run.run), run)
        yield
