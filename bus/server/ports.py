"""Free TCP ports of the loopback interface, or of another one."""

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bus.server.text import LOOPBACK

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST, _TRIES = 15_000, 100


def is_free(port: int, address: str = LOOPBACK) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def free_ports(num_ports: int, address: str = LOOPBACK) -> tuple[int, ...]:
    """Different ports that no outgoing connection is given by the system.

    One of those would do until it is listened on, and again while a server that was killed is away: any client on the machine
    may be given it meanwhile. Another program may still be quicker to listen on one: `bus.server.embedded` then draws again.
    """
    with held_ports(num_ports, address) as drawn:
        return drawn


@contextmanager
def held_ports(num_ports: int, address: str = LOOPBACK) -> Iterator[tuple[int, ...]]:
    """Such ports that nobody else draws while the context is open: who is told of one listens there late, and again.

    Whoever listens has to set SO_REUSEADDR, as servers do.
    """
    with ExitStack() as stack:
        held = [stack.enter_context(_bound(address)) for _ in range(num_ports)]
        for each in held:
            # Not before it is bound: two that held one port would not notice.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield tuple(each.getsockname()[1] for each in held)


@contextmanager
def held_port(address: str = LOOPBACK) -> Iterator[int]:
    """One alone."""
    with held_ports(1, address) as (port,):
        yield port


def _bound(address: str) -> socket.socket:
    first_ephemeral = _first_ephemeral()
    if first_ephemeral > _FIRST:
        draw = random.SystemRandom()
        for _ in range(_TRIES):
            with suppress(OSError):
                return _bind(address, draw.randrange(_FIRST, first_ephemeral))
    return _bind(address, 0)


def _bind(address: str, port: int) -> socket.socket:
    bound = socket.socket()
    try:
        bound.bind((address, port))
    except OSError:
        bound.close()
        raise
    return bound


def _first_ephemeral() -> int:
    """0 where the system does not say."""
    try:
        return int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
