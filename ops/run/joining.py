"""Connects one role to its run: the server's address, the role's key, and what a worker has before its own parts."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from bus.address import ServerAddress
from bus.context import WorkerContext
from bus.jetstream import JetStreamBus, connect
from bus.server.keys import public_key
from bus.server.locate import address_for as locate
from bus.subjects import Subjects
from ops.run.folder import RunFolder
from schemas.bus_config import BusConfig
from schemas.config import Config

_IDENTITY = 12
"""Characters beside the run's name."""


@dataclass(frozen=True)
class RoleRun:
    """One role in its run: what a worker has before its own parts are built."""

    folder: RunFolder
    config: Config
    context: WorkerContext


def subjects_of(config: Config) -> Subjects:
    return Subjects(config.bus_config.run, config.bus_config.num_shards)


def runs_of(bus: BusConfig) -> tuple[BusConfig, ...]:
    """Every run that the run folder's own server has an account for, this one first."""
    return (bus, *(replace(bus, run=guest) for guest in bus.guest_runs))


@asynccontextmanager
async def join(folder: RunFolder, config: Config, *, role: str, name: str, works: bool = False) -> AsyncIterator[JetStreamBus]:
    """Connects to the run's server or cluster with the key of one role (`bus.access.Access`). Creates nothing.

    `works`: as the worker of this name, which hands back at once what it held when it was killed.

    Raises:
        ConfigurationError: the role's key is not here, or the server's address cannot be used.
        BusUnavailable: no server answers.
        NotPermitted: the server refuses the key.
    """
    address = address_for(folder, config.bus_config, role)
    holdings = folder.holdings(name) if works else None
    async with connect(address, subjects_of(config), config.bus_config, name=name, holdings=holdings) as bus:
        yield bus


def address_for(folder: RunFolder, bus: BusConfig, role: str) -> ServerAddress:
    """Where the run's server or cluster is, with the key of one role. Raises `ConfigurationError`."""
    return locate(folder.server, bus, role)


def identity(folder: RunFolder, bus: BusConfig, role: str) -> str:
    """Tells this run from all others of its name, on every node: by the public half of a key that nobody else has, or, where
    a server of one's own asks for none, by the server's address."""
    address = locate(folder.server, bus, role)
    known = public_key(address.nkey_seed) if address.nkey_seed else f"{address.url} {address.credentials_file or ''}"
    return f"{bus.run}-{hashlib.sha256(known.encode()).hexdigest()[:_IDENTITY]}"
