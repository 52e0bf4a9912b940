"""Decides how long a server that is being started is waited for: after a kill it reads its whole store before it answers.

Invariant: one that works is waited for until a very slow disk would have given it the store; one that does nothing, no longer
than a server without a store.
"""

import os
from pathlib import Path

import anyio
import structlog

from bus.retry import Budget

_log = structlog.get_logger()
START_S = 30.0
"""For a server that has nothing to read."""
_SLOWEST_BYTES_PER_S = 20_000_000
"""Of its store; from a disk of today it reads some hundred million."""
_MOMENT_S = 5.0
LOOK_S = 0.5


def size_of(store: Path) -> int:
    """Bytes of all its files; 0 where there is none. A server may be at work on it."""
    num_bytes = 0
    for folder, _, names in os.walk(store):
        for name in names:
            try:
                num_bytes += os.stat(os.path.join(folder, name)).st_size  # noqa: PTH116, PTH118
            except FileNotFoundError:
                continue
    return num_bytes


def reading_s(num_bytes: int) -> float:
    """Seconds that reading a store may take at the longest."""
    return num_bytes / _SLOWEST_BYTES_PER_S


class Patience:
    """With one server that is being started."""

    def __init__(self, num_bytes: int) -> None:
        self._left = Budget(START_S + reading_s(num_bytes))
        self._idle = Budget(START_S)
        self._worked_s = 0.0

    @property
    def is_over(self) -> bool:
        return self._left.is_spent or self._idle.is_spent

    def spend(self, took_s: float, *, worked_s: float) -> None:
        """`took_s`: since it was spent on last; `worked_s`: processor time that the server has had so far."""
        self._left.spend(took_s, meant_s=2 * LOOK_S)
        if worked_s > self._worked_s:
            self._worked_s, self._idle = worked_s, Budget(START_S)
        else:
            self._idle.spend(took_s, meant_s=2 * LOOK_S)


async def tell_of_reading(num_bytes: int) -> None:
    """Says once, when it has taken longer than a moment, what is waited for. No news of a store that is read in one."""
    if reading_s(num_bytes) > _MOMENT_S:
        await anyio.sleep(_MOMENT_S)
        size, longest = f"{num_bytes / 1e9:.1f} GB", f"{reading_s(num_bytes) / 60:.0f} min"
        _log.warning("server_reads_its_store", size=size, at_the_longest=longest)
