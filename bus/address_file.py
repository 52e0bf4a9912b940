"""Where a server is that may start on any machine of a cluster: a file that its node writes, and everybody else reads.

bus_config.url: file:/shared/mine/server.json       which holds, say, {"url":"tls://gpu-17:4222","server_name":"cpu-1"}
"""

import re
from pathlib import Path

import msgspec

from schemas.errors import BusUnavailable, ConfigurationError

_SCHEME = "file:"
_LISTEN = re.compile(r'^listen: "[^"]*:(\d+)"$', re.MULTILINE)
_NAME = re.compile(r'^server_name: "([^"]+)"$', re.MULTILINE)


class Whereabouts(msgspec.Struct, frozen=True):
    """What such a file holds; that of a run's own server says more (`bus.server.embedded`)."""

    url: str
    server_name: str
    """Of the server's certificate, whatever machine it is on."""


def address_file(url: str) -> Path | None:
    """The file that a URL names; None for the URL of a server. Raises `ConfigurationError` for a path that is not absolute."""
    if not url.startswith(_SCHEME):
        return None
    path = Path(url.removeprefix(_SCHEME))
    if not path.is_absolute():
        raise ConfigurationError(f"bus_config.url is {url}: write the whole path, as in file:/shared/mine/server.json")
    return path


def read_whereabouts(path: Path) -> Whereabouts:
    """
    Raises:
        BusUnavailable: no server has said yet where it is.
        ConfigurationError: the file cannot be read, or holds something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Whereabouts)
    except FileNotFoundError:
        raise BusUnavailable(f"no server has said in {path} where it is: start the node with the role server") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationError(
            f"{path} does not say where the server is ({error}): its node writes it when it starts"
        ) from error


def say_whereabouts(path: Path, server: Path, host: str) -> None:
    """Writes the file: the server of this folder (`millrace cluster`) is on this host now.

    Raises `ConfigurationError` when the folder's nats.conf is not one of ours, or the file cannot be written.
    """
    text = (server / "nats.conf").read_text()
    port, name = _LISTEN.search(text), _NAME.search(text)
    if port is None or name is None:
        raise ConfigurationError(
            f"{server / 'nats.conf'} says no server_name and port: copy there what millrace cluster wrote"
        )
    partial = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(msgspec.json.encode(Whereabouts(f"tls://{host}:{port[1]}", name[1])))
        partial.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written ({error.strerror}): it has to be where all nodes see it"
        ) from error
