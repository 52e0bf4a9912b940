"""Has a run's own server up for a while, when it is not running already."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from bus.server import is_served, nats_server
from ops.run_folder import RunFolder
from schemas.config import Config


@asynccontextmanager
async def served(folder: RunFolder, config: Config) -> AsyncIterator[None]:
    """The server that is started here is stopped on leaving; one that somebody else runs is left alone."""
    async with AsyncExitStack() as stack:
        if not config.bus_config.url and not is_served(folder.server):
            await stack.enter_async_context(nats_server(folder.server))
        yield
