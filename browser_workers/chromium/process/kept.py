"""Counts what Playwright keeps of pages: its driver and this process hold requests with their addresses, headers and bodies,
answers, sockets, frames and what the console was given, however long, until their page is closed.

Invariant: what a message brings is counted before anybody hears of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.async_api import BrowserContext

MOST_MIB = 64
"""Of one context, in all. Once beyond it, its pages are of no more use."""
_UNCOUNTED = 8 * 1024
"""Bytes of each thing. Playwright lets the oldest go of ten thousand of a kind."""
_BRINGS = frozenset({"__create__", "console", "navigated", "pageError"})
"""What the driver sends unasked that has something to keep, in it or in the driver."""

Read = Callable[[bytes], dict[str, Any]]


@dataclass
class _Watched:
    exceeded: Callable[[str], object]
    num_bytes: int = 0


class Kept:
    """Of all contexts of one driver."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watched] = {}

    def watch(self, context: BrowserContext, exceeded: Callable[[str], object]) -> None:
        """`exceeded` is told why the context's pages have to be closed, with each thing beyond the bound."""
        self._watched[context._impl_obj._guid] = _Watched(exceeded)

    def forget(self, context: BrowserContext) -> None:
        self._watched.pop(context._impl_obj._guid, None)

    def counting(self, objects: dict[str, Any], read: Read) -> Read:
        """Reads a message of the driver like `read`, and counts it. `objects`: what the driver has told of, by name."""

        def counted(data: bytes) -> dict[str, Any]:
            message = read(data)
            if message.get("method") in _BRINGS and len(data) > _UNCOUNTED:
                self._count(objects.get(message.get("guid", "")), len(data) - _UNCOUNTED)
            return message

        return counted

    def _count(self, owner: Any, num_bytes: int) -> None:
        while owner is not None and owner._guid not in self._watched:
            owner = owner._parent
        if owner is None:
            return
        watched = self._watched[owner._guid]
        watched.num_bytes += num_bytes
        if watched.num_bytes > MOST_MIB * 2**20:
            watched.exceeded(
                f"more than {MOST_MIB} MiB had to be kept of what the page asks for, sends and says in its console"
            )
