"""The order in which a cluster's servers are tried: those on this machine first, the others in a drawn order.

A worker beside a server then goes on when its machine is cut off from a third one; all workers together are spread.
"""

import ipaddress
import random
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

import anyio

_RESOLVED_S = 1.0


async def nearest_first(urls: Iterable[str]) -> list[str]:
    drawn = list(urls)
    random.shuffle(drawn)
    here = {url: await _is_here(urlsplit(url).hostname or "") for url in drawn}
    return sorted(drawn, key=lambda url: not here[url])


async def _is_here(host: str) -> bool:
    """Whether an address of this host is one of this machine's: only to those can a socket be bound."""
    if _binds(host):
        return True
    try:
        with anyio.move_on_after(_RESOLVED_S):
            found = await anyio.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
            return any(_binds(str(address[0])) for *_, address in found)
    except OSError:
        pass
    return False


def _binds(address: str) -> bool:
    """False for a name: it is not looked up."""
    try:
        family = socket.AF_INET if ipaddress.ip_address(address).version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except (OSError, ValueError):
        return False
    return True
