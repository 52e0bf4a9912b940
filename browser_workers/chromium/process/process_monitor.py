"""Looks after the processes of one Chromium: ends pages that use too much memory or keep it from answering, notices what no
event tells.

Invariant: from the moment a page passes its bound, or a process that everything depends on ends or stands still, it takes less
than a second until it is dealt with, whether anybody uses the browser or not.
"""

from collections import deque
from collections.abc import Callable, Mapping

import anyio
import anyio.to_thread
import structlog

from browser_workers.chromium.process.launch import Chromium
from browser_workers.chromium.process.memory import pss_mib
from browser_workers.chromium.process.processes import Part, ProcessTree, Seen

_log = structlog.get_logger()
_LOOK_S = 0.25
_NEAR_LOOK_S = 0.1
"""While a page is above half of its bound."""
_SURE_S = 0.5
_WEIGH_S = 5.0
"""Between two readings of the whole browser's memory."""
_ESSENTIAL = {
    # The cause before its consequences: each of these takes those behind it with it.
    Part.DRIVER: "the browser's driver",
    Part.BROWSER: "the browser",
    Part.ZYGOTE: "the browser's zygote",
    Part.NETWORK: "the browser's network process",
}

BUSY_WINDOW_S = 5.0
_BUSY_S = 0.1
"""CPU that a page has to have used in it: on a crowded machine the busiest gets no more than this."""

Look = Mapping[int, Seen]


def broken(before: Look, now: Look) -> str:
    """Why the browser as a whole cannot go on; empty while it can.

    Only what was stopped in two looks counts: whoever stops and continues this worker with its browser is no fault.
    """
    for part, name in _ESSENTIAL.items():
        for pid in (pid for pid, was in before.items() if was.part is part):
            if pid not in now:
                return f"{name} ended while it was in use"
            if before[pid].stopped and now[pid].stopped:
                return f"{name} was stopped while it was in use"
    return ""


def stopped_pages(before: Look, now: Look) -> list[int]:
    return [
        pid for pid, seen in now.items() if seen.part is Part.PAGE and seen.stopped and pid in before and before[pid].stopped
    ]


def suspects(now: Look, bound_mib: float) -> list[int]:
    """Pages whose resident memory is beyond a bound. Their share of it, which is smaller, takes longer to read."""
    return [pid for pid, seen in now.items() if seen.part is Part.PAGE and seen.resident_mib > bound_mib]


def busiest(before: Look, now: Look) -> int | None:
    """The page that used most CPU from one look to the other, where one used any to speak of."""
    used = {pid: seen.cpu_s - (before[pid].cpu_s if pid in before else 0.0) for pid, seen in now.items()}
    pages = [pid for pid, seen in now.items() if seen.part is Part.PAGE and used[pid] >= _BUSY_S]
    return max(pages, key=lambda pid: used[pid], default=None)


class ProcessMonitor:
    """`keep` runs until it is cancelled or the browser is lost."""

    def __init__(
        self,
        running: Chromium,
        processes: ProcessTree,
        *,
        page_memory_mb: int,
        bound_mib: float,
        on_memory: Callable[[float], None],
    ) -> None:
        self._running = running
        self._processes = processes
        self._page_memory_mb = page_memory_mb
        self._page_bound_mib = float(page_memory_mb or "inf")
        self._bound_mib = bound_mib
        """Of the whole browser. Resident memory counts what is shared many times: while even that is below it, all is well."""
        self._on_memory = on_memory
        """Is told the memory of the whole browser, in MiB, from time to time, where it may be beyond its bound."""
        self._thread = anyio.CapacityLimiter(1)
        self._looks: deque[tuple[float, Look]] = deque()
        """Those of the last `BUSY_WINDOW_S`."""

    def end_busiest(self) -> None:
        """Ends the page that most likely keeps the browser from answering, where there is one."""
        if not self._looks:
            return
        (_, before), (_, now) = self._looks[0], self._looks[-1]
        if (pid := busiest(before, now)) is not None:
            self._end_page(pid, "the page kept the browser from answering and was ended", now[pid].resident_mib)

    async def keep(self) -> None:
        before: Look = {}
        weigh_at = anyio.current_time() + _WEIGH_S
        while not self._running.lost.is_set():
            now = await self._look()
            self._remember(now)
            if broken(before, now):
                # A consequence may have been seen before its cause.
                await anyio.sleep(_SURE_S)
                now = await self._look()
                if reason := broken(before, now):
                    self._running.lose(reason)
                    return
            for pid in stopped_pages(before, now):
                self._end_page(pid, "the page's process was stopped", now[pid].resident_mib)
            for pid in suspects(now, self._page_bound_mib):
                await self._weigh_page(pid)
            if anyio.current_time() >= weigh_at and sum(seen.resident_mib for seen in now.values()) >= self._bound_mib:
                weigh_at = anyio.current_time() + _WEIGH_S
                self._on_memory(await anyio.to_thread.run_sync(self._processes.memory_mib, limiter=self._thread))
            before = now
            await anyio.sleep(_NEAR_LOOK_S if suspects(now, self._page_bound_mib / 2) else _LOOK_S)

    def _remember(self, look: Look) -> None:
        now = anyio.current_time()
        self._looks.append((now, look))
        while self._looks[0][0] < now - BUSY_WINDOW_S:
            self._looks.popleft()

    async def _look(self) -> Look:
        return await anyio.to_thread.run_sync(self._processes.look, limiter=self._thread)

    async def _weigh_page(self, pid: int) -> None:
        used_mib = await anyio.to_thread.run_sync(pss_mib, pid, limiter=self._thread)
        if used_mib > self._page_bound_mib:
            bound = f"{self._page_memory_mb:,} MiB (browser_config.page_memory_mb)"
            self._end_page(pid, f"the page used more than {bound} and was ended", used_mib)

    def _end_page(self, pid: int, reason: str, used_mib: float) -> None:
        _log.warning("page_ended", reason=reason, memory_mib=round(used_mib))
        self._running.expect_crash(reason)
        self._processes.kill(pid)
