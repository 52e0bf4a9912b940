"""What process trees use, read from outside: processor seconds, and memory as a proportional share (PSS)."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

import anyio
import anyio.to_thread
import psutil

from browser_workers.chromium.process.memory import pss_mib

_SAMPLE_S = 2.0


class ProcessUsage:
    """Of process trees; the children that have ended count through whoever waited for them."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = tuple(roots)
        self.peak_pss_mib = 0.0
        self.peak_processes = 0

    def cpu_s(self) -> float:
        return sum(sum(times[:4]) for times in self._each("cpu_times"))

    def pss_mib(self) -> float:
        return sum(pss_mib(process.pid) for process in self._tree())

    async def watch(self) -> None:
        """Keeps the peaks up to date."""
        while True:
            used = await anyio.to_thread.run_sync(self.pss_mib)
            self.peak_pss_mib = max(self.peak_pss_mib, used)
            self.peak_processes = max(self.peak_processes, len(list(self._tree())))
            await anyio.sleep(_SAMPLE_S)

    def _each(self, method: str) -> Iterator[tuple[float, ...]]:
        for process in self._tree():
            with suppress(psutil.Error):
                yield getattr(process, method)()

    def _tree(self) -> Iterator[psutil.Process]:
        for root in self._roots:
            with suppress(psutil.Error):
                process = psutil.Process(root)
                yield process
                yield from process.children(recursive=True)
