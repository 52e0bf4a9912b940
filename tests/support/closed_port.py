"""A port of this machine at which nobody answers, and nobody else's for as long."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def closed_port() -> Iterator[int]:
    """It is bound, and nobody listens: whoever connects is refused at once."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        yield port
