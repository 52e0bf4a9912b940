"""Free TCP ports of the loopback interface, or of another one."""

import random
import socket
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
    drawn = set[int]()
    while len(drawn) < num_ports:
        drawn.add(_draw(address))
    return tuple(drawn)


def free_port(address: str = LOOPBACK) -> int:
    """One alone: those of one server are drawn together."""
    return free_ports(1, address)[0]


def _draw(address: str) -> int:
    first_ephemeral = _first_ephemeral()
    if first_ephemeral > _FIRST:
        draw = random.SystemRandom()
        for _ in range(_TRIES):
            if is_free(port := draw.randrange(_FIRST, first_ephemeral), address):
                return port
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def _first_ephemeral() -> int:
    """0 where the system does not say."""
    try:
        return int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
