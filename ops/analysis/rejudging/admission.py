"""A rubric becomes one of a run's own: in its stored configuration, in its server's permissions, and with its queue."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio

from bus.server import address_of, reload_permissions
from ops.run.folder import RunFolder
from ops.run.joining import runs_of
from ops.run.streams import create_streams
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.file_lock import try_lock

_LOOK_S = 0.1


def with_rubric(config: Config, rubric: str) -> Config:
    """The rubric stands behind those there are: what the run is trained by stays the first."""
    bus = config.bus_config
    if rubric in bus.rubrics:
        return config
    return replace(config, bus_config=replace(bus, rubrics=(*bus.rubrics, rubric)))


def require_admissible(bus: BusConfig, rubric: str) -> None:
    """Raises `ConfigurationError` when the run's servers are not this folder's own and do not know the rubric."""
    if bus.url and rubric not in bus.rubrics:
        rubrics = ",".join((*bus.rubrics, rubric))
        raise ConfigurationError(
            f"the servers of {bus.url} give no permission for {rubric}: add 'bus_config.rubrics=[{rubrics}]' to what millrace "
            "cluster is given, copy nats.conf and reload the servers, run millrace streams with it, then this with it"
        )


async def admit(folder: RunFolder, rubric: str) -> None:
    """The run's own server, which has to be up, serves the rubric from now on, after a restart too.

    Safe to repeat, also after a kill half-way, and by several processes at once.

    Raises:
        BusError: the server does not answer, or refuses a change.
    """
    async with _alone(folder):
        stored = folder.load()
        config = with_rubric(stored, rubric)
        if config != stored:
            folder.store(config)
        bus = config.bus_config
        await reload_permissions(folder.server, runs_of(bus))
        await create_streams(address_of(folder.server, run=bus.run), bus)


@asynccontextmanager
async def _alone(folder: RunFolder) -> AsyncIterator[None]:
    """No other process changes this run's configuration meanwhile."""
    with (folder.path / "config.lock").open("w") as lock:
        while not try_lock(lock, folder.path):  # noqa: ASYNC110 - the kernel announces nothing
            await anyio.sleep(_LOOK_S)
        yield
