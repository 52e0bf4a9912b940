"""The embedded nats-server: a child process on the loopback interface, with JetStream, whose data live in the run's folder.

<folder>/nats.conf     configuration, written at every start
<folder>/nats.seed     the run's private nkey, readable by its owner only
<folder>/nats.json     where clients find it; port and key survive restarts, so clients reconnect by themselves
<folder>/nats.log      what the server said
<folder>/nats.lock     held by the process that runs the server
<folder>/jetstream/    its store
"""

import fcntl
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.abc
import msgspec
import nkeys
import psutil
import structlog

from bus.address import ServerAddress
from bus.jetstream.bus import require_jetstream
from bus.jetstream.link import open_link
from bus.server_binary import ServerBinary, find_binary
from schemas.errors import BusUnavailable, ConfigurationError

_log = structlog.get_logger()
_READY_S = 30.0
_STOPPING_S = 5.0
_LEAST_FREE_BYTES = 256 * 1024 * 1024
_MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
_LOOPBACK = "127.0.0.1"


class Place(msgspec.Struct, frozen=True):
    """What `nats.json` holds."""

    port: int
    monitor_port: int

    @property
    def url(self) -> str:
        return f"nats://{_LOOPBACK}:{self.port}"


@dataclass(frozen=True)
class ServerProcess:
    """A running server."""

    address: ServerAddress
    monitor_url: str
    pid: int
    _process: anyio.abc.Process
    _log_file: Path

    async def wait_dead(self) -> str:
        """Returns when the server has ended, with the reason as far as it is known."""
        code = await self._process.wait()
        return f"nats-server ended with status {code}: {_last_words(self._log_file)}"


def address_of(folder: Path) -> ServerAddress:
    """Where the server of this folder is, running or not.

    Raises:
        ConfigurationError: no server has run there yet.
    """
    try:
        place = msgspec.json.decode((folder / "nats.json").read_bytes(), type=Place)
        seed = (folder / "nats.seed").read_text().strip()
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigurationError(
            f"no NATS server has run in {folder} yet: start the run's server role first, or write bus_config.url"
        ) from error
    return ServerAddress(place.url, nkey_seed=seed)


def is_served(folder: Path) -> bool:
    """Whether some process runs this folder's server now."""
    try:
        with _lock(folder):
            return False
    except ConfigurationError:
        return True


@asynccontextmanager
async def nats_server(
    folder: Path, *, port: int | None = None, max_payload_bytes: int = _MAX_PAYLOAD_BYTES
) -> AsyncIterator[ServerAddress]:
    """Runs a server while the context is open; see `server_process`."""
    async with server_process(folder, port=port, max_payload_bytes=max_payload_bytes) as server:
        yield server.address


@asynccontextmanager
async def server_process(
    folder: Path, *, port: int | None = None, max_payload_bytes: int = _MAX_PAYLOAD_BYTES
) -> AsyncIterator[ServerProcess]:
    """Starts a server and waits until JetStream answers; stops it cleanly on leaving.

    Raises:
        ConfigurationError: no usable binary, the folder cannot be written, the disk is full, the port is taken, or another
            process runs this folder's server.
    """
    binary = await find_binary()
    _prepare(folder)
    with _lock(folder):
        await _end_orphan(folder)
        place = _place(folder, port)
        address = ServerAddress(place.url, nkey_seed=_seed(folder))
        config = folder / "nats.conf"
        config.write_text(_config(folder, place, address, binary, max_payload_bytes))
        _publish(folder / "nats.json", msgspec.json.encode(place))
        log_file = folder / "nats.log"
        with log_file.open("ab") as output:
            # A session of its own: an interrupt at the terminal reaches the workers first, and they close in order.
            process = await anyio.open_process(
                [str(binary.path), "-c", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            await _wait_ready(process, address, log_file)
            _log.info("server_ready", url=place.url, pid=process.pid, version=binary.version_text)
            yield ServerProcess(address, f"http://{_LOOPBACK}:{place.monitor_port}", process.pid, process, log_file)
        finally:
            await _stop(process)


def _publish(path: Path, content: bytes) -> None:
    """Whole or not at all: workers that are started beside a restarting server read this file at any moment."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)


async def _wait_ready(process: anyio.abc.Process, address: ServerAddress, log_file: Path) -> None:
    async def watch(scope: anyio.CancelScope) -> None:
        await process.wait()
        scope.cancel()

    ready = False
    with anyio.move_on_after(_READY_S):
        async with anyio.create_task_group() as group:
            group.start_soon(watch, group.cancel_scope)
            while not ready:
                # `open_link` itself waits for the port to open, `require_jetstream` for the store to be read.
                with suppress(BusUnavailable):
                    async with open_link(address, "start") as link:
                        await require_jetstream(link, address)
                        ready = True
            group.cancel_scope.cancel()
    if not ready:
        raise ConfigurationError(f"nats-server could not be started: {_last_words(log_file)}; see {log_file}")


async def _stop(process: anyio.abc.Process) -> None:
    with anyio.CancelScope(shield=True):
        with suppress(ProcessLookupError):
            process.terminate()
        with anyio.move_on_after(_STOPPING_S) as scope:
            await process.wait()
        if scope.cancelled_caught:
            _log.warning("server_killed", pid=process.pid)
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await process.aclose()


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".write-{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise ConfigurationError(
            f"the server cannot write to {folder} ({error.strerror}): choose another save_path or correct its permissions"
        ) from error
    if free < _LEAST_FREE_BYTES:
        raise ConfigurationError(
            f"{folder} has {free // 2**20} MiB of disk left, the server needs {_LEAST_FREE_BYTES // 2**20}: "
            "make room or choose another save_path"
        )


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    with (folder / "nats.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(
                f"the server of {folder} is running already: use it, or choose another save_path for a second run"
            ) from error
        yield


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
                await anyio.to_thread.run_sync(process.wait, _STOPPING_S)


def _place(folder: Path, port: int | None) -> Place:
    """The port asked for, else the one used last time, else a free one."""
    try:
        known = msgspec.json.decode((folder / "nats.json").read_bytes(), type=Place)
    except (OSError, msgspec.DecodeError):
        known = None
    wanted = port or (known.port if known else None)
    if wanted is not None and not _is_free(wanted):
        raise ConfigurationError(
            f"port {wanted} is taken by another program: end that one, or remove {folder / 'nats.json'} to use another port"
        )
    monitor = known.monitor_port if known and _is_free(known.monitor_port) else _free_port()
    return Place(port=wanted or _free_port(), monitor_port=monitor)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_LOOPBACK, port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port


def _seed(folder: Path) -> str:
    path = folder / "nats.seed"
    if not path.exists():
        seed: bytes = nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(seed)
    return path.read_text().strip()


def _public_key(seed: str) -> str:
    pair = nkeys.from_seed(bytearray(seed.encode()))
    key: str = pair.public_key.decode()
    pair.wipe()
    return key


def _config(folder: Path, place: Place, address: ServerAddress, binary: ServerBinary, max_payload_bytes: int) -> str:
    lines = [
        f"host: {_LOOPBACK}",
        f"port: {place.port}",
        f'http: "{_LOOPBACK}:{place.monitor_port}"',
        f"max_payload: {max_payload_bytes}",
        f'authorization {{ timeout: 10, users: [ {{ nkey: "{_public_key(address.nkey_seed)}" }} ] }}',
        f"jetstream {{ store_dir: {_quoted(folder / 'jetstream')} }}",
    ]
    if binary.version >= (2, 14):
        # The client library reads acknowledgement subjects of the first format only.
        lines.append("feature_flags { js_ack_fc_v2: false }")
    return "\n".join(lines) + "\n"


def _quoted(path: Path) -> str:
    return '"' + str(path.resolve()).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _last_words(log_file: Path) -> str:
    """The latest fatal or error line of the log, else its last line."""
    try:
        lines = log_file.read_text(errors="replace").splitlines()[-50:]
    except OSError:
        return "it left no log"
    serious = [line for line in lines if "[FTL]" in line or "[ERR]" in line]
    return (serious or lines or ["it said nothing"])[-1]
