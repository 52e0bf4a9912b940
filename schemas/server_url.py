"""The addresses of NATS servers, as people write them: `tls://host:port`, several of a cluster separated by commas."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from schemas.requirement import require

_SCHEMES = ("nats://", "tls://")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")


def server_urls(text: str) -> tuple[str, ...]:
    """Each with its scheme: `nats` where none is written.

    Raises `ConfigurationError` with what to write; it has nothing of a text that may hold a password.
    """
    require(
        "@" not in text,
        "bus_config.url names a user or a password, which messages and logs would show: write scheme, host and port alone, "
        "and the folder of keys in bus_config.keys, or a file in bus_config.credentials_file",
    )
    urls = tuple(url if "://" in url else f"nats://{url}" for each in text.split(",") if (url := each.strip()))
    for url in urls or (text,):
        require(
            _is_server(url),
            f"bus_config.url has {url!r}: write scheme, host and port of a server, as in tls://nats-1.example.org:4222, or "
            "nats://127.0.0.1:4222 on this machine",
        )
    return urls


def _is_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        is_host = _NAME.fullmatch(host) is not None or bool(ip_address(host))
    except ValueError:
        return False
    rest = (parts.path.strip("/"), parts.query, parts.fragment)
    return is_host and url.startswith(_SCHEMES) and port != 0 and not any(rest) and url.isprintable()
