"""Browsers that others run, behind one DevTools address or several: each serves many episodes, in contexts of their own.

Invariants: what is left of a worker that is gone goes with its connection, so that there are no sessions to sweep; an address
whose browser was lost gets no episode for a while, unless all were.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence

import structlog

from browser_workers.providers.provider import Bill, Label, Place, Provided, Running

_log = structlog.get_logger()
_COOLDOWN_S = 30.0


class Addresses:
    """Satisfies `browser_workers.providers.provider.Provider`: the one with fewest of this worker's episodes is next."""

    lease_s = 0.0

    def __init__(self, urls: Sequence[str], token: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = {str(number): Place(url, token) for number, url in enumerate(urls)}
        self._num_held: Counter[str] = Counter()
        self._ready_at: dict[str, float] = {}
        self._clock = clock

    async def create(self, label: Label) -> Provided:
        now = self._clock()
        chosen = min(self._places, key=lambda each: (max(self._ready_at.get(each, now), now), self._num_held[each]))
        self._num_held[chosen] += 1
        return Provided(chosen, self._places[chosen], label)

    async def keep_alive(self, session: Provided) -> None: ...

    async def end(self, session_id: str, *, was_lost: bool = False) -> Bill:
        self._num_held[session_id] -= 1
        if was_lost and len(self._places) > 1:
            self._ready_at[session_id] = self._clock() + _COOLDOWN_S
            _log.warning("browser_cooling", address=self._places[session_id].shown, seconds=_COOLDOWN_S)
        return Bill()

    async def running(self, run: str) -> Sequence[Running]:
        return ()

    async def close(self) -> None: ...
