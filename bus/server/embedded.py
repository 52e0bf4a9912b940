"""The embedded nats-server: a child process on the loopback interface, with JetStream, whose data live in the run's folder.

<folder>/nats.conf     configuration, written at every start
<folder>/keys/         a key for every role of every run, readable by their owner only
<folder>/nats.json     where clients find it; port and keys survive restarts, so clients reconnect by themselves, and they
                       follow it where another program has taken its port meanwhile
<folder>/nats.log      what the server said
<folder>/nats.lock     held by the process that runs the server, as is nats.role (`bus.server.lock`)
<folder>/jetstream/    its store
"""

import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.abc
import msgspec
import psutil
import structlog

from bus.access import Access
from bus.address import ServerAddress, inbox_of
from bus.address_file import Whereabouts
from bus.background import background
from bus.output_file import ended
from bus.server.accounts import access_of
from bus.server.keys import KeyRing, write_private
from bus.server.lock import only_server
from bus.server.patience import size_of
from bus.server.ports import free_ports, is_free
from bus.server.process import PortTaken, last_words, start, stop, wait_ready
from bus.server.text import LOOPBACK, ServerSettings, server_text
from bus.server_binary import ServerBinary, find_binary
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.ids import RunName

_log = structlog.get_logger()
_STOPPING_S = 30.0
_REDRAWS = 2
_LEAST_FREE_BYTES = 256 * 1024 * 1024
_PLACE = "nats.json"
_ANY_RUN = (BusConfig(),)


class Place(Whereabouts, frozen=True, kw_only=True):
    """What `nats.json` holds."""

    monitor_port: int
    runs: tuple[RunName, ...] = ()

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0


@dataclass(frozen=True)
class ServerProcess:
    """A running server."""

    address: ServerAddress
    """For the administrator of its first run."""
    monitor_url: str
    process: anyio.abc.Process
    _log_file: Path
    _let_go: Callable[[], None]

    @property
    def pid(self) -> int:
        return self.process.pid

    async def wait_dead(self) -> str:
        """Returns when the server has ended, with the reason as far as it is known. Others may serve the folder then.

        As long as somebody waits, its log is bounded.
        """
        code = await ended(self.process, self._log_file)
        self._let_go()
        return f"nats-server ended with status {code}: {last_words(self._log_file)}"


def address_of(folder: Path, *, role: str = Access.ADMIN, run: RunName | None = None) -> ServerAddress:
    """Where the server of this folder is, running or not, with the key of one role in one run (without a name: the first).

    Raises:
        ConfigurationError: no server has run there yet, or it serves no such run.
    """
    place = _known(folder)
    if place is None:
        raise ConfigurationError(
            f"no NATS server has run in {folder} yet: start the run's server role first, or write bus_config.url"
        )
    run = run or place.runs[0]
    if run not in place.runs:
        raise ConfigurationError(
            f"the server of {folder} has no account for the run {run}: it serves {', '.join(place.runs)}; "
            "add it to its bus_config.guest_runs"
        )
    access = Access.named(role)
    seed = KeyRing(folder / "keys").seed(run, access)
    return ServerAddress(place.url, file=folder / _PLACE, nkey_seed=seed, inbox_prefix=inbox_of(access))


@asynccontextmanager
async def nats_server(
    folder: Path, runs: Sequence[BusConfig] = _ANY_RUN, *, port: int | None = None, max_payload_bytes: int | None = None
) -> AsyncIterator[ServerAddress]:
    """Runs a server while the context is open; see `server_process`. When it is killed, others may serve the folder."""

    async def watch() -> None:
        await server.wait_dead()

    async with server_process(folder, runs, port=port, max_payload_bytes=max_payload_bytes) as server, background(watch):
        yield server.address


@asynccontextmanager
async def server_process(
    folder: Path,
    runs: Sequence[BusConfig] = _ANY_RUN,
    *,
    port: int | None = None,
    max_payload_bytes: int | None = None,
    max_store_bytes: int | None = None,
    lasting: bool = False,
) -> AsyncIterator[ServerProcess]:
    """Starts a server with an account for every run and waits until JetStream answers; stops it cleanly on leaving.

    Its streams may hold `max_store_bytes` together; None: as much as the disk has room for at this start.

    `lasting`: it is the run's own one. While another process serves a run that is down, to read it, that one is waited for.

    It listens on loopback, whatever is configured: servers for other machines are written by `bus.server.cluster_files`.

    Raises:
        ConfigurationError: no usable binary, the folder cannot be written, the disk is full, the port is taken, or another
            process runs this folder's server (with `lasting`: another that lasts).
    """
    binary = await find_binary()
    folder = _prepared(folder)
    async with only_server(folder, lasting=lasting) as let_go:
        await _end_orphan(folder)
        serve = partial(
            _start,
            folder,
            binary,
            runs,
            let_go,
            max_payload_bytes=max_payload_bytes or runs[0].max_payload_bytes,
            max_store_bytes=max_store_bytes or _room_for(folder / "jetstream"),
        )
        server = await _on_ports(folder, port, runs, serve)
        try:
            yield server
        finally:
            await stop(server.process)


def served_runs(folder: Path) -> tuple[RunName, ...]:
    """Runs that the server of this folder has accounts for, running or not."""
    place = _known(folder)
    return place.runs if place else ()


async def _on_ports(
    folder: Path, port: int | None, runs: Sequence[BusConfig], serve: Callable[[Place], Awaitable[ServerProcess]]
) -> ServerProcess:
    """Ports that nobody asked for are drawn again where another program was quicker to listen on them."""
    taken = set[int]()
    for _ in range(_REDRAWS):
        place = _place(folder, port, runs, taken)
        try:
            return await serve(place)
        except PortTaken as error:
            _log.warning("server_port_taken", reason=str(error))
            taken |= {place.port, place.monitor_port}
    return await serve(_place(folder, port, runs, taken))


async def _start(
    folder: Path,
    binary: ServerBinary,
    runs: Sequence[BusConfig],
    let_go: Callable[[], None],
    place: Place,
    *,
    max_payload_bytes: int,
    max_store_bytes: int,
) -> ServerProcess:
    config, log_file, store = folder / "nats.conf", folder / "nats.log", folder / "jetstream"
    settings = ServerSettings(
        name=f"millrace-{place.port}",
        port=place.port,
        monitor_port=place.monitor_port,
        store_dir=str(store),
        max_store_bytes=max_store_bytes,
        max_payload_bytes=max_payload_bytes,
        sync_interval=runs[0].sync_interval,
        version=binary.version,
    )
    write_private(config, _text(folder, settings, runs).encode())
    # Whole or not at all: workers that are started beside a restarting server read this file at any moment.
    write_private(folder / _PLACE, msgspec.json.encode(place))
    address = address_of(folder)
    process = await start(binary, config, log_file)
    try:
        await wait_ready(process, address, log_file, store)
    except BaseException:
        await stop(process)
        raise
    _log.info("server_ready", url=place.url, pid=process.pid, version=binary.version_text)
    return ServerProcess(address, f"http://{LOOPBACK}:{place.monitor_port}", process, log_file, let_go)


def _text(folder: Path, settings: ServerSettings, runs: Sequence[BusConfig]) -> str:
    keys = KeyRing(folder / "keys")
    for run in runs:
        keys.make(run.run)
    return server_text(settings, [access_of(run, keys) for run in runs], keys.system_public_key())


def _prepared(folder: Path) -> Path:
    """The folder by its whole path, however it is spelled: by that its server is found again, and another one's is not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder = folder.resolve()
        probe = folder / f".write-{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise ConfigurationError(
            f"the server cannot write to {folder} ({error.strerror}): choose another save_path or correct its permissions"
        ) from error
    if free <= _LEAST_FREE_BYTES:
        raise ConfigurationError(
            f"{folder} has {free // 2**20} MiB of disk left, the server needs {_LEAST_FREE_BYTES // 2**20}: "
            "make room or choose another save_path"
        )
    return folder


def _room_for(store: Path) -> int:
    """Bytes that the store may come to: at its limit a server refuses, and writers wait; on a full disk it falls silent."""
    return shutil.disk_usage(store.parent).free + size_of(store) - _LEAST_FREE_BYTES


async def _end_orphan(folder: Path) -> None:
    """Ends a server of this very folder whose parent was killed: nobody holds the lock, so nobody else looks after it."""
    config = str(folder / "nats.conf")
    for process in psutil.process_iter(["cmdline", "name"]):
        cmdline = process.info["cmdline"] or []
        if process.info["name"] != "nats-server" or config not in cmdline:
            continue
        _log.warning("orphaned_server_ended", pid=process.pid)
        with suppress(psutil.NoSuchProcess):
            process.terminate()
            try:
                await anyio.to_thread.run_sync(process.wait, _STOPPING_S)
            except psutil.TimeoutExpired:
                process.kill()
                # One that nobody reaps listens no more.
                with suppress(psutil.TimeoutExpired):
                    await anyio.to_thread.run_sync(process.wait, _STOPPING_S)


def _known(folder: Path) -> Place | None:
    try:
        return msgspec.json.decode((folder / _PLACE).read_bytes(), type=Place)
    except (OSError, msgspec.DecodeError):
        return None


def _place(folder: Path, port: int | None, runs: Sequence[BusConfig], taken: Set[int]) -> Place:
    """The port asked for, else the one used last time, else a free one. `taken`: others were quicker to listen there."""
    if port is not None and not is_free(port):
        raise ConfigurationError(f"port {port} is taken by another program: end that one, or choose another port")

    def again(used: int) -> int | None:
        return None if used in taken or not is_free(used) else used

    known = _known(folder)
    before, monitor = (again(known.port), again(known.monitor_port)) if known else (None, None)
    kept = port or before
    if known and kept is None:
        _log.warning("server_moves", port=known.port, reason="another program listens there")
    drawn = (one for one in free_ports(3) if one != kept)
    url = f"nats://{LOOPBACK}:{kept or next(drawn)}"
    return Place(url=url, server_name="", monitor_port=monitor or next(drawn), runs=tuple(run.run for run in runs))
