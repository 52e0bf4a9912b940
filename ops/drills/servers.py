"""The servers of a drill: started again whenever they end, and where workers find them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import anyio
import psutil
import structlog

from bus.background import background
from bus.server.local_cluster import ClusterServer, LocalCluster, local_cluster
from ops.processes.supervisor import Supervisor
from ops.run.folder import RunFolder
from ops.run.streams import create_streams
from schemas.bus_config import BusConfig
from schemas.errors import BusError

_LOOK_S = 0.1
_DOWN_S = 0.5
"""Seconds that a member of a cluster stays down."""
_LEADERS_S = 60.0
_log = structlog.get_logger()


class Servers(Protocol):
    """Servers that are started again whenever they end."""

    @property
    def names(self) -> Sequence[str]: ...

    def pid(self, name: str) -> int | None:
        """Process id of a nats-server; None while it is not up, or for a name that none has."""
        ...

    async def leader(self) -> str | None:
        """Who leads a stream of the run now; None when nobody does, or there is only one server."""
        ...


class EmbeddedServer:
    """The run's own server, below its role."""

    def __init__(self, supervisor: Supervisor, role_name: str) -> None:
        self._supervisor = supervisor
        self._role_name = role_name
        self.names = (role_name,)

    def pid(self, name: str) -> int | None:
        role = self._supervisor.pid(self._role_name)
        if role is not None:
            with suppress(psutil.Error):
                for child in psutil.Process(role).children():
                    if child.name() == "nats-server":
                        return child.pid
        return None

    async def leader(self) -> str | None:
        return None


class ClusterServers:
    """A cluster on this machine; the streams whose leaders are asked for take turns."""

    def __init__(self, cluster: LocalCluster, streams: Sequence[str]) -> None:
        self._cluster = cluster
        self._members = {f"server-{server.name}": server for server in cluster.servers}
        self._streams = list(streams)
        self.names = tuple(self._members)
        self.url = cluster.address().url

    def pid(self, name: str) -> int | None:
        member = self._members.get(name)
        return member.pid if member is not None and member.is_up and _is_alive(member.pid) else None

    async def leader(self) -> str | None:
        self._streams.append(stream := self._streams.pop(0))
        with suppress(BusError):
            leader = await self._cluster.leader_of(stream)
            return next((name for name, member in self._members.items() if member is leader), None)
        return None

    async def keep(self) -> None:
        """Starts members again that have ended, for ever."""
        async with anyio.create_task_group() as group:
            for name, member in self._members.items():
                group.start_soon(_keep, name, member)


async def _keep(name: str, member: ClusterServer) -> None:
    while True:
        if member.is_up and not _is_alive(member.pid):
            _log.info("server_ended", server=name)
            await member.stop()
            await anyio.sleep(_DOWN_S)
            await member.launch()
        await anyio.sleep(_LOOK_S)


def _is_alive(pid: int) -> bool:
    with suppress(psutil.Error):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


@asynccontextmanager
async def cluster_servers(folder: RunFolder, bus: BusConfig, streams: Sequence[str]) -> AsyncIterator[ClusterServers]:
    """Three servers with the run's streams, kept running while the context is open; `bus.url` and `bus.keys` lead to them."""
    async with local_cluster(folder.server, (bus,)) as cluster:
        with anyio.fail_after(_LEADERS_S):
            while True:
                try:
                    await create_streams(cluster.address(), bus)
                    break
                except BusError as error:
                    # A young cluster has no leaders yet.
                    _log.info("streams_awaited", reason=str(error))
                    await anyio.sleep(0.5)
        servers = ClusterServers(cluster, streams)
        async with background(servers.keep):
            yield servers
