"""Several servers on this machine, for drills: the configuration of a real cluster, on loopback.

<folder>/keys/<run>/<role>.seed    as everywhere
<folder>/<name>/                   one server: nats.conf, nats.log, jetstream/, and its certificate where there is TLS
"""

import datetime
import os
import secrets
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc
import msgspec

from bus.access import Access
from bus.address import ServerAddress, inbox_of
from bus.jetstream.api import Response, ask
from bus.jetstream.link import open_link
from bus.server.accounts import access_of
from bus.server.keys import KeyRing, write_private
from bus.server.ports import held_ports
from bus.server.process import start, stop, wait_ready
from bus.server.text import LOOPBACK, ClusterLink, ServerSettings, TlsFiles, server_text
from bus.server_binary import ServerBinary, find_binary
from schemas.bus_config import BusConfig
from schemas.ids import RunName

_ASK_S = 10.0


class _Leadership(msgspec.Struct, frozen=True):
    leader: str = ""


class _Led(Response, frozen=True):
    cluster: _Leadership = _Leadership()


@dataclass(eq=False)
class ClusterServer:
    """One server of a local cluster; it can be killed and started again."""

    name: str
    folder: Path
    address: ServerAddress
    """Of this server alone, for the administrator of the first run."""
    monitor_url: str
    _binary: ServerBinary
    _process: anyio.abc.Process | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        """Raises `ProcessLookupError` while it is down."""
        if self._process is None:
            raise ProcessLookupError(f"{self.name} is down")
        return self._process.pid

    @property
    def is_up(self) -> bool:
        return self._process is not None

    async def launch(self) -> None:
        """Starts the process without waiting for anything."""
        self._process = await start(self._binary, self.folder / "nats.conf", self.folder / "nats.log")

    async def wait_ready(self) -> None:
        """Returns when it answers for JetStream, for which a majority has to be up."""
        assert self._process is not None, "launch it first"
        await wait_ready(self._process, self.address, self.folder / "nats.log", self.folder / "jetstream")

    async def start(self) -> None:
        await self.launch()
        await self.wait_ready()

    async def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        os.kill(self.pid, signal.SIGKILL)
        await self.stop()

    async def stop(self) -> None:
        """In order, and killed when that takes too long."""
        process, self._process = self._process, None
        if process is not None:
            await stop(process)


@dataclass(frozen=True)
class LocalCluster:
    """Running servers; had from `local_cluster`."""

    folder: Path
    servers: tuple[ClusterServer, ...]
    runs: tuple[RunName, ...]
    ca_file: Path | None

    def address(self, *, role: str = Access.ADMIN, run: RunName | None = None) -> ServerAddress:
        """All servers, with the key of one role in one run (without a name: the first)."""
        access = Access.named(role)
        return ServerAddress(
            ",".join(server.address.url for server in self.servers),
            nkey_seed=KeyRing(self.folder / "keys").seed(run or self.runs[0], access),
            ca_file=self.ca_file,
            inbox_prefix=inbox_of(access),
        )

    async def leader_of(self, stream: str, *, run: RunName | None = None) -> ClusterServer | None:
        """The server that leads a stream now; None while there is no leader.

        Raises:
            BusUnavailable: no server answers.
            ApiError: there is no such stream.
        """
        async with open_link(self.address(run=run), "leader") as link:
            led = await ask(link, f"STREAM.INFO.{stream}", None, _Led, timeout_s=_ASK_S)
        return next((server for server in self.servers if server.name == led.cluster.leader), None)


@asynccontextmanager
async def local_cluster(
    folder: Path, runs: Sequence[BusConfig] = (BusConfig(replicas=3),), *, num_servers: int = 3, tls: bool = False
) -> AsyncIterator[LocalCluster]:
    """Runs servers on loopback while the context is open. With `tls` their certificates are made as for a real cluster.

    Raises:
        ConfigurationError: a server cannot be started.
    """
    binary = await find_binary()
    with held_ports(3 * num_servers) as ports:
        cluster = _written(folder, tuple(runs), ports, tls, binary)
        try:
            for server in cluster.servers:
                await server.launch()
            async with anyio.create_task_group() as group:
                for server in cluster.servers:
                    group.start_soon(server.wait_ready)
            yield cluster
        finally:
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as group:
                    for server in cluster.servers:
                        group.start_soon(server.stop)


def _written(
    folder: Path, runs: tuple[BusConfig, ...], held: tuple[int, ...], tls: bool, binary: ServerBinary
) -> LocalCluster:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    keys = KeyRing(folder / "keys")
    for run in runs:
        keys.make(run.run)
    accounts, system, password = [access_of(run, keys) for run in runs], keys.system_public_key(), secrets.token_urlsafe(32)
    ports = list(zip(held[::3], held[1::3], held[2::3], strict=True))
    ca_file = folder / "ca.pem" if tls else None
    servers = list[ClusterServer]()
    for number, (client, route, monitor) in enumerate(ports):
        name = f"s{number + 1}"
        own = folder / name
        own.mkdir(mode=0o700, exist_ok=True)
        settings = ServerSettings(
            name=name,
            port=client,
            monitor_port=monitor,
            store_dir=str((own / "jetstream").resolve()),
            max_payload_bytes=max(run.max_payload_bytes for run in runs),
            sync_interval=runs[0].sync_interval,
            version=binary.version,
            tls=_certified(folder, own) if tls else None,
            cluster=_link(route, [other for _, other, _ in ports if other != route], password),
        )
        write_private(own / "nats.conf", server_text(settings, accounts, system).encode())
        address = ServerAddress(
            f"{'tls' if tls else 'nats'}://{LOOPBACK}:{client}",
            nkey_seed=keys.seed(runs[0].run, Access.ADMIN),
            ca_file=ca_file,
            inbox_prefix=inbox_of(Access.ADMIN),
        )
        servers.append(ClusterServer(name, own, address, f"http://{LOOPBACK}:{monitor}", binary))
    return LocalCluster(folder, tuple(servers), tuple(run.run for run in runs), ca_file)


def _link(port: int, others: Sequence[int], password: str) -> ClusterLink | None:
    if not others:
        return None
    peers = tuple(f"{LOOPBACK}:{other}" for other in others)
    return ClusterLink(name="local", host=LOOPBACK, port=port, user="route", password=password, peers=peers)


def _certified(folder: Path, own: Path) -> TlsFiles:
    from bus.server.certificates import Authority

    now = datetime.datetime.now(datetime.UTC)
    Authority.of(folder, now).issue(LOOPBACK, own, now)
    return TlsFiles(*(str((own / name).resolve()) for name in ("server.pem", "server.key", "ca.pem")))
