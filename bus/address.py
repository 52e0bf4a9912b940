"""Holds a NATS server's address and the credentials for it. Secrets never show in a representation.

Invariant: beyond this machine an address has TLS and credentials; there is no value of the other kind.
"""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from schemas.errors import ConfigurationError
from schemas.server_url import server_urls

_INBOX = "_INBOX"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """One server or cluster, with at most one kind of credentials.

    Raises:
        ConfigurationError: `url` names no server, or one beyond loopback without TLS or without credentials.
    """

    url: str
    """`nats://host:port`, or `tls://`; several servers of a cluster are separated by commas."""
    nkey_seed: str = field(default="", repr=False)
    credentials_file: Path | None = None
    """A JWT credentials file, for servers with accounts of an operator."""
    ca_file: Path | None = None
    """Certificates that vouch for the servers; None: those that this machine trusts."""
    server_name: str = ""
    """What the server's certificate says; empty: the host of `url`."""
    file: Path | None = None
    """Says where the server is now, if it may move to another machine or port (`bus.address_file`)."""
    inbox_prefix: str = _INBOX
    """What the subjects of our own begin with: only the key of this role may listen there."""

    def __post_init__(self) -> None:
        for url in self.urls:
            parts = urlsplit(url)
            host = parts.hostname or ""
            if is_loopback(host):
                continue
            if parts.scheme != "tls":
                raise ConfigurationError(
                    f"{url} is beyond this machine and not encrypted: write tls://{parts.netloc} "
                    "(bus_config.url), and the certificate authority in bus_config.ca_file"
                )
            if not self.nkey_seed and self.credentials_file is None:
                raise ConfigurationError(
                    f"{url} is beyond this machine and no credentials are given: write the folder of the role's key in "
                    "bus_config.keys (or bus_config.credentials_file)"
                )

    @property
    def urls(self) -> tuple[str, ...]:
        return server_urls(self.url)

    @property
    def is_encrypted(self) -> bool:
        return any(url.startswith("tls://") for url in self.urls)

    @property
    def key_name(self) -> str:
        """Names the key in messages to people."""
        return self.inbox_prefix.removeprefix(f"{_INBOX}_") if self.inbox_prefix != _INBOX else "these credentials"


def inbox_of(role: str) -> str:
    """The private inbox prefix of a role."""
    return f"{_INBOX}_{role}"


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
