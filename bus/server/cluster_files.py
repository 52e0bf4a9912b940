"""Writes what the servers of a cluster need: one folder per server, one key per role and run, one authority.

<out>/ca.pem, ca.key           the private authority; only ca.pem is ever copied
<out>/keys/<run>/<role>.seed   what a node with that role is given
<out>/servers/<host>/          what that host is given: nats.conf, server.pem, server.key, ca.pem

Written again, for another run or another host, it keeps every key and certificate that is there.
"""

import datetime
import re
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from bus.server.accounts import RunAccess, access_of
from bus.server.keys import KeyRing, write_private
from bus.server.text import ClusterLink, ServerSettings, TlsFiles, server_text
from bus.server_binary import OLDEST_OF_CLUSTERS
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - never without TLS and credentials: `ServerSettings` refuses that
_ROUTE_USER = "route"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The servers that a person asks for. Raises `ConfigurationError` for hosts or numbers that make no cluster."""

    hosts: tuple[str, ...]
    """Name or address by which clients and the other servers reach each one."""
    runs: tuple[BusConfig, ...]
    client_port: int = 4222
    cluster_port: int = 6222
    monitor_port: int = 8222
    sync_interval: str = "2m"
    store_dir: str = "jetstream"
    """Where a server keeps its data, relative to the folder it is started in."""

    def __post_init__(self) -> None:
        if len(self.hosts) == 2:
            raise ConfigurationError(
                "two servers are no cluster: when one is lost the other is no majority and everything stops; "
                "write --server once, or three times"
            )
        if not self.hosts or len(set(self.hosts)) < len(self.hosts):
            raise ConfigurationError("write --server once for every host, each a different one")
        for host in self.hosts:
            if not _HOST.match(host):
                raise ConfigurationError(f"--server {host!r} is no host name or address: write one without scheme and port")
        if len({self.client_port, self.cluster_port, self.monitor_port}) < 3:
            raise ConfigurationError("--client-port, --cluster-port and --monitor-port have to differ: write another one")
        if not self.runs or len({run.run for run in self.runs}) < len(self.runs):
            raise ConfigurationError("write --run once for every run, each a different one")


async def write_cluster(out: Path, plan: ClusterPlan) -> None:
    """Writes the folder. Raises `ConfigurationError` when it cannot be written, or the cluster extra is not installed."""
    await anyio.to_thread.run_sync(_write, out, plan, datetime.datetime.now(datetime.UTC))


def _write(out: Path, plan: ClusterPlan, now: datetime.datetime) -> None:
    try:
        from bus.server.certificates import Authority
    except ImportError as error:
        raise ConfigurationError(
            "certificates are made with a package that is missing: pip install 'millrace[cluster]'"
        ) from error
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        out.chmod(stat.S_IRWXU)
        keys = KeyRing(out / "keys")
        _check_keeps_runs(keys.folder, plan)
        for run in plan.runs:
            keys.make(run.run)
        accounts = [access_of(run, keys) for run in plan.runs]
        system, password = keys.system_public_key(), _route_password(out)
        authority = Authority.of(out, now)
        for host in plan.hosts:
            folder = server_folder(out, host)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (folder / "server.pem").exists():
                authority.issue(host, folder, now)
            write_private(folder / "nats.conf", _text(plan, host, accounts, system, password).encode())
    except OSError as error:
        raise ConfigurationError(f"{out} cannot be written ({error.strerror}): choose another --out") from error


def _check_keeps_runs(keys: Path, plan: ClusterPlan) -> None:
    known = {path.name for path in keys.iterdir() if path.is_dir()} if keys.exists() else set()
    forgotten = sorted(known - {run.run for run in plan.runs})
    if forgotten:
        raise ConfigurationError(
            f"{keys} has keys of runs that would lose their account: add --run {' --run '.join(forgotten)}, "
            "or delete the folders of their keys"
        )


def server_folder(out: Path, host: str) -> Path:
    return out / "servers" / host.replace(":", "_")


def _text(plan: ClusterPlan, host: str, accounts: Sequence[RunAccess], system: str, password: str) -> str:
    cluster = None
    if len(plan.hosts) > 1:
        cluster = ClusterLink(
            name="millrace",
            host=_EVERYWHERE,
            port=plan.cluster_port,
            user=_ROUTE_USER,
            password=password,
            peers=tuple(_at(peer, plan.cluster_port) for peer in plan.hosts if peer != host),
            advertise=_at(host, plan.cluster_port),
        )
    settings = ServerSettings(
        name=host,
        host=_EVERYWHERE,
        port=plan.client_port,
        monitor_port=plan.monitor_port,
        store_dir=plan.store_dir,
        max_payload_bytes=max(run.max_payload_bytes for run in plan.runs),
        sync_interval=plan.sync_interval,
        version=OLDEST_OF_CLUSTERS,
        advertise=_at(host, plan.client_port),
        tls=TlsFiles("server.pem", "server.key", "ca.pem"),
        cluster=cluster,
    )
    return server_text(settings, accounts, system)


def _at(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def client_url(plan: ClusterPlan) -> str:
    """What goes into `bus_config.url`."""
    return ",".join(f"tls://{_at(host, plan.client_port)}" for host in plan.hosts)


def _route_password(out: Path) -> str:
    path = out / "keys" / "route.password"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32).encode())
    return path.read_text()
