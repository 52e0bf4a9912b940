"""The largest resident memory that processes were seen with, by role."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import anyio
import psutil

_LOOK_S = 1.0
_MIB = 1024 * 1024


class MemoryWatch:
    """`peak_mib`: of one process of each role, the largest there was."""

    def __init__(self, pids: Callable[[], Mapping[str, Iterable[int]]]) -> None:
        self._pids = pids
        self.peak_mib: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            for role, pids in self._pids().items():
                for pid in pids:
                    with suppress(psutil.Error):
                        used = psutil.Process(pid).memory_info().rss / _MIB
                        self.peak_mib[role] = max(self.peak_mib.get(role, 0.0), round(used, 1))
            await anyio.sleep(_LOOK_S)
