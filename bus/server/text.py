"""The configuration text of one nats-server, from values: accounts, users with their permissions, TLS, cluster.

Invariant: no text exists for a server that listens beyond loopback without TLS; users always have keys; monitoring, which
knows no credentials, stays on loopback.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bus.address import is_loopback
from bus.server.accounts import RunAccess, accounts_text, listed, quoted
from schemas.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
_FIRST_WITH_ACK_FLAG = (2, 14)
_SYSTEM = "$SYS"
"""No run can have this name."""
_ROUTE_PING, _ROUTE_PINGS = "3s", 2
_ACCOUNTS = "accounts {"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths as the server will find them."""

    certificate: str
    key: str
    authority: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLink:
    """How a server finds and recognises the others of its cluster."""

    name: str
    host: str
    port: int
    user: str
    password: str
    peers: tuple[str, ...]
    """`host:port` of every other server."""
    advertise: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """One server. Raises `ConfigurationError` when it would listen beyond loopback without TLS."""

    name: str
    port: int
    monitor_port: int
    store_dir: str
    max_payload_bytes: int
    sync_interval: str
    version: tuple[int, ...]
    max_store_bytes: int | None = None
    """What streams may hold together; None: the server's own choice, three quarters of the disk that is free at its start."""
    host: str = LOOPBACK
    advertise: str = ""
    """`host:port` that clients are told; empty: the addresses that it listens on."""
    tls: TlsFiles | None = None
    cluster: ClusterLink | None = None

    def __post_init__(self) -> None:
        hosts = (self.host, self.cluster.host if self.cluster else LOOPBACK)
        exposed = next((host for host in hosts if not is_loopback(host)), None)
        if exposed is not None and self.tls is None:
            raise ConfigurationError(
                f"a server on {exposed} needs TLS: have its certificates made by millrace cluster, or listen on {LOOPBACK}"
            )


def server_text(settings: ServerSettings, runs: Sequence[RunAccess], system_key: str) -> str:
    """Everything that `nats-server -c` needs."""
    lines = [
        f"server_name: {quoted(settings.name)}",
        f"listen: {quoted(f'{settings.host}:{settings.port}')}",
        f"http: {quoted(f'{LOOPBACK}:{settings.monitor_port}')}",
        f"max_payload: {settings.max_payload_bytes}",
    ]
    if settings.advertise:
        lines.append(f"client_advertise: {quoted(settings.advertise)}")
    if settings.version >= _FIRST_WITH_ACK_FLAG:
        # The client library reads acknowledgement subjects of the first format only.
        lines.append("feature_flags { js_ack_fc_v2: false }")
    room = "" if settings.max_store_bytes is None else f", max_file_store: {settings.max_store_bytes}"
    lines += [
        f"jetstream {{ store_dir: {quoted(settings.store_dir)}, sync_interval: {quoted(settings.sync_interval)}{room} }}",
        "authorization { timeout: 10 }",
    ]
    if settings.tls is not None:
        lines.append(_tls(settings.tls, verify=False))
    if settings.cluster is not None:
        lines += _cluster(settings.cluster, settings.tls)
    return "\n".join([*lines, *_accounts(runs, system_key)])


def with_accounts(text: str, runs: Sequence[RunAccess], system_key: str) -> str:
    """A server's own text with its accounts written anew; everything that a running server cannot change stays."""
    lines = text.splitlines()
    return "\n".join([*lines[: lines.index(_ACCOUNTS)], *_accounts(runs, system_key)])


def _accounts(runs: Sequence[RunAccess], system_key: str) -> Iterable[str]:
    """The end of the text."""
    yield _ACCOUNTS
    yield f"  {_SYSTEM} {{ users: [ {{ nkey: {system_key} }} ] }}"
    for run in runs:
        yield from accounts_text(run)
    yield from ("}", f"system_account: {quoted(_SYSTEM)}", "")


def _tls(files: TlsFiles, *, verify: bool) -> str:
    paths = {"cert_file": files.certificate, "key_file": files.key, "ca_file": files.authority}
    named = ", ".join(f"{key}: {quoted(path)}" for key, path in paths.items())
    return f"tls {{ {named}, verify: {str(verify).lower()}, timeout: 10 }}"


def _cluster(link: ClusterLink, tls: TlsFiles | None) -> Iterable[str]:
    credentials = f"{link.user}:{link.password}"
    scheme = "tls" if tls else "nats-route"
    yield "cluster {"
    yield f"  name: {quoted(link.name)}"
    yield f"  listen: {quoted(f'{link.host}:{link.port}')}"
    if link.advertise:
        yield f"  cluster_advertise: {quoted(link.advertise)}"
    yield f"  authorization {{ user: {quoted(link.user)}, password: {quoted(link.password)}, timeout: 10 }}"
    if tls is not None:
        yield f"  {_tls(tls, verify=True)}"
    # A server that was cut off without a word still counts as one of those who may answer a read, until its routes are closed:
    # two minutes and more if the others do not ask sooner.
    yield f"  ping_interval: {quoted(_ROUTE_PING)}, ping_max: {_ROUTE_PINGS}"
    yield f"  routes: {listed(tuple(f'{scheme}://{credentials}@{peer}' for peer in link.peers))}"
    yield "}"
