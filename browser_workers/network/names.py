"""Looks hosts up, off the event loop, and remembers the answers for a while."""

import socket
import time
from ipaddress import ip_address

import anyio
import anyio.to_thread

from browser_workers.network.addresses import Address, literal

_KEPT_S = 60.0
_KEPT = 256
_THREADS = 8


class Names:
    """Of one episode."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, tuple[Address, ...]]] = {}
        self._limiter = anyio.CapacityLimiter(_THREADS)

    async def addresses(self, host: str) -> tuple[Address, ...]:
        """In the order in which they are to be tried. Raises `OSError` when there are none."""
        if (address := literal(host)) is not None:
            return (address,)
        until, found = self._known.get(host, (0.0, ()))
        if time.monotonic() < until:
            return found
        found = await anyio.to_thread.run_sync(_look_up, host, abandon_on_cancel=True, limiter=self._limiter)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[host] = (time.monotonic() + _KEPT_S, found)
        return found


def _look_up(host: str) -> tuple[Address, ...]:
    # As bytes: a name of the wire is not to be encoded once more.
    answers = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ip_address(str(answer[4][0])) for answer in answers))
