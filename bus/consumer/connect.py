"""Joins a run as a consumer: from its folder, or by address and keys. Creates nothing on the server."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from bus.address import ServerAddress
from bus.background import companion_group
from bus.consumer.run import Run
from bus.jetstream import connect as connect_bus
from bus.jetstream.api import STREAM_NOT_FOUND, ApiError, Response, ask
from bus.jetstream.bus import require_jetstream
from bus.jetstream.link import open_link
from bus.jetstream.retrying import RetryLimits, retried
from bus.server import is_served, nats_server
from bus.server.embedded import served_runs
from bus.server.locate import address_for
from bus.subjects import Subjects
from bus.topology import NUM_SHARDS
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError, NotPermitted
from schemas.ids import RunName

_HELLO = RetryLimits(attempt_s=5.0, total_s=15.0)
"""A server that has much to do, or comes back, is silent for some seconds."""


class _StreamConfig(msgspec.Struct, frozen=True):
    metadata: dict[str, str] = {}


class _StreamFacts(Response, frozen=True):
    config: _StreamConfig = _StreamConfig()


class _StoredConfig(msgspec.Struct, frozen=True):
    """What counts here of a run folder's `config.yaml`."""

    bus_config: BusConfig


@asynccontextmanager
async def connect(  # noqa: PLR0913 (who the run is, in the words of its configuration; all but the folder are keywords)
    folder: str | Path | None = None,
    *,
    url: str = "",
    run: str = "",
    keys: str | Path = "",
    ca_file: str | Path = "",
    credentials_file: str | Path = "",
    role: str = "consumer",
    name: str = "",
    serve: bool = False,
) -> AsyncIterator[Run]:
    """Opens a run for reading.

    Args:
        folder: the run's folder, which says where the server is and holds its keys; or nothing, with `url` and `run`.
        url: `tls://host:port`, or `nats://` on this machine; several servers of a cluster are separated by commas.
        run: the run's name (`bus_config.run`).
        keys: folder that holds `consumer.seed`, the key of this run's consumers.
        ca_file: certificates that vouch for the servers; without it, those that this machine trusts.
        credentials_file: in place of `keys`, for a server with accounts of an operator.
        role: whose key to use; `monitor` may read heartbeats and dead letters too, but keeps no place.
        name: tells people whose connection it is.
        serve: a run of this machine whose server is down is served for the while; nothing comes any more, so that its
            streams end with their newest record. One that is up is read as without it.

    Raises:
        ConfigurationError: no such run, one that is not up, no such key, or arguments that do not fit; the message says what
            to write instead.
        BusUnavailable: no server answers.
        NotPermitted: the server refuses the key.
    """
    bus = _stored(Path(folder)) if folder is not None else BusConfig()
    given = {"url": url, "run": run, "keys": str(keys), "ca_file": str(ca_file), "credentials_file": str(credentials_file)}
    bus = replace(bus, **{key: value for key, value in given.items() if value})  # type: ignore[arg-type]
    if folder is None and not (url and run):
        raise ConfigurationError(
            'say which run: connect("runs/mine"), or connect(url="tls://host:4222", run="mine", keys="keys/mine")'
        )
    server = Path(folder or ".") / "server"
    address = address_for(server, bus, role)
    is_down = not bus.url and not is_served(server)
    if is_down and not serve:
        raise ConfigurationError(
            f"no server runs for {folder}: the run has ended, or has not begun. "
            "To read what it has stored, write connect(..., serve=True)"
        )
    client = name or f"{role}-{socket.gethostname()}-{os.getpid()}"
    async with AsyncExitStack() as stack:
        if is_down:
            await stack.enter_async_context(nats_server(server, [replace(bus, run=each) for each in served_runs(server)]))
        subjects = Subjects(bus.run, await _num_shards(address, bus.run, client))
        bus = replace(bus, num_shards=subjects.num_shards)
        connection = await stack.enter_async_context(connect_bus(address, subjects, bus, name=client))
        group = await stack.enter_async_context(companion_group())
        opened = Run(connection, subjects, group, has_ended=is_down)
        stack.push_async_callback(opened.aclose)
        yield opened


def _stored(folder: Path) -> BusConfig:
    try:
        return msgspec.yaml.decode((folder / "config.yaml").read_bytes(), type=_StoredConfig).bus_config
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{folder} holds no run: give the folder of a run that was created, or url=, run= and keys="
        ) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"{folder / 'config.yaml'} cannot be read ({error})") from error


async def _num_shards(address: ServerAddress, run: RunName, client: str) -> int:
    """As the run's streams tell, so that a consumer needs to know the run's name only."""
    stream = Subjects(run).trajectories
    async with open_link(address, client) as link:
        await require_jetstream(link, address)

        async def asked(wait_s: float) -> _StreamFacts:
            return await ask(link, f"STREAM.INFO.{stream}", None, _StreamFacts, timeout_s=wait_s)

        try:
            facts = await retried(link, f"asking for stream {stream}", _HELLO, asked)
        except ApiError as error:
            if error.failure.err_code != STREAM_NOT_FOUND:
                raise
            raise ConfigurationError(
                f"the server at {address.url} holds no run {run!r} (there is no stream {stream}): "
                "write the run's own bus_config.run as run=, or create its streams first (`millrace streams`)"
            ) from error
        except NotPermitted as error:
            raise ConfigurationError(
                f"the server at {address.url} does not let this key read the run {run!r} ({error}): "
                "write the name of the run that the key is for as run=, or take that run's key"
            ) from error
    return int(facts.config.metadata[NUM_SHARDS])
