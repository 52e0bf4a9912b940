"""Looks names up, off the event loop.

Invariant: a name that was found has the same addresses as long as the episode lasts, however often and wherever it moves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

import anyio
import anyio.to_thread

from browser_workers.network.addresses import Address, assumed

_MAX_NAMES = 4096
_THREADS = 8


class TooManyNames(Exception):
    """An episode's pages ask for names without end."""


@dataclass(slots=True)
class _Name:
    addresses: tuple[Address, ...] = ()
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    """Whoever asks while it is looked up waits for that answer."""


class Names:
    """Of one episode."""

    def __init__(self, look_up: Callable[[str], tuple[Address, ...]]) -> None:
        self._look_up = look_up
        self._known: dict[str, _Name] = {}
        self._limiter = anyio.CapacityLimiter(_THREADS)

    async def addresses(self, host: str) -> tuple[Address, ...]:
        """In the order in which they are to be tried. Raises `OSError` or `ValueError` when there are none, `TooManyNames`."""
        if fixed := assumed(host):
            return fixed
        if host not in self._known and len(self._known) >= _MAX_NAMES:
            raise TooManyNames(f"the episode's pages have asked for {_MAX_NAMES} names already")
        name = self._known.setdefault(host, _Name())
        async with name.lock:
            if not name.addresses:
                found = await anyio.to_thread.run_sync(self._look_up, host, abandon_on_cancel=True, limiter=self._limiter)
                name.addresses = in_turn(found)
        return name.addresses

    def answered(self, host: str, address: Address) -> None:
        """It is tried first from now on."""
        if (name := self._known.get(host)) is not None:
            name.addresses = (address, *(each for each in name.addresses if each != address))


def in_turn(addresses: Sequence[Address]) -> tuple[Address, ...]:
    """IPv6 and IPv4 by turns, the first one's kind first (RFC 8305, section 4)."""
    of_first = [each for each in addresses if each.version == addresses[0].version]
    others = [each for each in addresses if each.version != addresses[0].version]
    return tuple(each for each in chain.from_iterable(zip_longest(of_first, others)) if each is not None)
