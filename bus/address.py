"""Where a NATS server is and how this process proves who it is. Secrets never show in a representation."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """One server or cluster, with at most one kind of credentials."""

    url: str
    """`nats://host:port`, or `tls://`; several servers of a cluster are separated by commas."""
    nkey_seed: str = field(default="", repr=False)
    credentials_file: Path | None = None
    """A JWT credentials file, for servers with accounts of an operator."""
