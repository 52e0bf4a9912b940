"""Joins a run as a consumer: from its folder, or by address and key. Creates nothing on the server."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bus.address import ServerAddress
from bus.companions import companion_group
from bus.consumer.run import Run
from bus.jetstream import connect as connect_bus
from bus.jetstream.api import STREAM_NOT_FOUND, ApiError, Response, ask
from bus.jetstream.bus import require_jetstream
from bus.jetstream.link import Link, open_link
from bus.server import address_of
from bus.subjects import Subjects
from schemas.config import BusConfig
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.ids import RunName

_HELLO_S = 5.0
_NUM_SHARDS = "millrace.num_shards"


class _StreamConfig(msgspec.Struct, frozen=True):
    metadata: dict[str, str] = {}


class _StreamFacts(Response, frozen=True):
    config: _StreamConfig = _StreamConfig()


class _BusSection(msgspec.Struct, frozen=True):
    run: str = BusConfig().run
    url: str = ""
    credentials_file: str = ""


class _StoredConfig(msgspec.Struct, frozen=True):
    """What counts here of a run folder's `config.yaml`."""

    bus_config: _BusSection = _BusSection()


@asynccontextmanager
async def connect(
    folder: str | Path | None = None,
    *,
    url: str = "",
    run: str = "",
    key: str | Path | None = None,
    credentials: str | Path | None = None,
    name: str = "",
) -> AsyncIterator[Run]:
    """Opens a run for reading.

    Args:
        folder: the run's folder, which says where the server is and holds its key; or nothing, with `url` and `run`.
        url: `nats://host:port` or `tls://host:port`; several servers of a cluster are separated by commas.
        run: the run's name (`bus_config.run`).
        key: file with the consumer role's nkey seed.
        credentials: file with JWT credentials, for a server of an operator, in place of `key`.
        name: tells people whose connection it is.

    Raises:
        ConfigurationError: no such run, no such key, or the wrong arguments; the message says what to write instead.
        BusUnavailable: no server answers.
    """
    address, run_name = _from_folder(Path(folder)) if folder is not None else (None, "")
    if url:
        address = ServerAddress(url, nkey_seed=_seed(key), credentials_file=Path(credentials) if credentials else None)
    run_name = run or run_name
    if address is None or not run_name:
        raise ConfigurationError(
            'say which run: connect("runs/mine"), or connect(url="nats://host:4222", run="millrace", key=...)'
        )
    client = name or f"consumer-{socket.gethostname()}-{os.getpid()}"
    subjects = await _find(address, RunName(run_name), client)
    config = BusConfig(run=subjects.run, url=url, num_shards=subjects.num_shards)
    async with connect_bus(address, subjects, config, name=client) as bus, companion_group() as group:
        opened = Run(bus, subjects, group)
        try:
            yield opened
        finally:
            await opened.aclose()


def _from_folder(folder: Path) -> tuple[ServerAddress, str]:
    try:
        stored = msgspec.yaml.decode((folder / "config.yaml").read_bytes(), type=_StoredConfig).bus_config
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{folder} holds no run: give the folder of a run that was created, or url=, run= and key="
        ) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"{folder / 'config.yaml'} cannot be read ({error})") from error
    if not stored.url:
        return address_of(folder / "server"), stored.run
    credentials = Path(stored.credentials_file).expanduser() if stored.credentials_file else None
    return ServerAddress(stored.url, credentials_file=credentials), stored.run


def _seed(key: str | Path | None) -> str:
    if key is None:
        return ""
    try:
        return Path(key).expanduser().read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"the key {key} cannot be read ({error.strerror}): give the file with the seed") from error


async def _find(address: ServerAddress, run: RunName, client: str) -> Subjects:
    """The run's names, with the number of shards that its streams tell."""
    one_shard = Subjects(run)
    async with open_link(address, client) as link:
        await require_jetstream(link, address)
        metadata = await _metadata(link, address, one_shard.trajectories, run)
    return Subjects(run, int(metadata.get(_NUM_SHARDS, "1")))


async def _metadata(link: Link, address: ServerAddress, stream: str, run: RunName) -> dict[str, str]:
    try:
        facts = await ask(link, f"STREAM.INFO.{stream}", None, _StreamFacts, timeout_s=_HELLO_S)
    except ApiError as error:
        if error.failure.err_code != STREAM_NOT_FOUND:
            raise
        raise ConfigurationError(
            f"the server at {address.url} holds no run named {run!r} (there is no stream {stream}): "
            "write the run's bus_config.run as run=, or start its server role first"
        ) from error
    except BusUnavailable as error:
        raise ConfigurationError(
            f"the server at {address.url} does not let this key read the run {run!r} ({error}): "
            "take the key of the run's role consumer, and the run's own name as run="
        ) from error
    return facts.config.metadata
