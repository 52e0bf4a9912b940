"""The network as the gate has it: where names are looked up, and how an address is connected to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address

from browser_workers.network.addresses import Address
from browser_workers.network.pipe import End


def _look_up(host: str) -> tuple[Address, ...]:
    # As bytes: a name of the wire is not to be encoded once more.
    answers = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ip_address(str(answer[4][0])) for answer in answers))


async def _connect(end: Callable[[], End], address: Address, port: int) -> End:
    # An address in figures is not looked up again.
    return (await asyncio.get_running_loop().create_connection(end, str(address), port))[1]


@dataclass(frozen=True, slots=True)
class Network:
    look_up: Callable[[str], tuple[Address, ...]] = _look_up
    """Blocks. Raises `OSError` or `ValueError` when a name has no address."""
    connect: Callable[[Callable[[], End], Address, int], Awaitable[End]] = _connect
    """Raises `OSError`."""
