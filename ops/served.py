"""A run's own server, for commands that need a run which may have ended: started for the while when it is not up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bus.server import address_of, is_served, nats_server
from ops.roles import runs_of
from ops.run_folder import RunFolder
from ops.streams import create_streams
from schemas.config import Config


@asynccontextmanager
async def served(folder: RunFolder, config: Config) -> AsyncIterator[None]:
    """The server is up while the context is open, and the run's streams are there: also those of a run that is new."""
    if config.bus_config.url or is_served(folder.server):
        yield
        return
    runs = runs_of(config.bus_config)
    async with nats_server(folder.server, runs):
        for run in runs:
            await create_streams(address_of(folder.server, run=run.run), run)
        yield
