"""One Chromium that serves a worker: the sessions in it, and until when it takes more of them."""

import time

import anyio
import structlog
from anyio.abc import TaskGroup

from browser_workers.chromium.process.launch import Chromium
from browser_workers.chromium.process.process_monitor import ProcessMonitor
from browser_workers.chromium.process.retirement import Lifetime
from browser_workers.chromium.session import PlaywrightSession
from schemas.errors import BrowserLost

_log = structlog.get_logger()
_PING_S = 2.0


class Instance:
    """Once `usable` is false it stays so; when the last episode is over as well, `ended` is set."""

    def __init__(self, running: Chromium, group: TaskGroup, lifetime: Lifetime, *, page_memory_mb: int) -> None:
        self.running = running
        self.group = group
        """Where what its sessions' events ask for is done."""
        self.ended = anyio.Event()
        """Set when it shall end."""
        self.sessions: set[PlaywrightSession] = set()
        self.parked: list[PlaywrightSession] = []
        """Those of `sessions` that wait for an episode."""
        self._lifetime = lifetime
        self._page_memory_mb = page_memory_mb
        self._born_at = time.monotonic()
        self._memory_mib = 0.0
        self._num_begun = 0
        self._num_active = 0
        self._retired = ""

    @property
    def usable(self) -> bool:
        """Whether it takes another episode."""
        if self.running.lost.is_set() or (self.running.is_session and self._num_begun):
            return False
        if not self._retired:
            age_s = time.monotonic() - self._born_at
            self._retired = self._lifetime.over(age_s=age_s, num_episodes=self._num_begun, memory_mib=self._memory_mib)
            if self._retired:
                _log.info("browser_retired", reason=self._retired, active=self._num_active)
        return not self._retired

    def begin_episode(self) -> None:
        self._num_begun += 1
        self._num_active += 1

    def end_episode(self) -> None:
        self._num_active -= 1
        self.end_if_done()

    def end_if_done(self) -> None:
        if not self.usable and not self._num_active:
            self.ended.set()

    async def watch(self) -> None:
        """Until it is lost."""
        self.group.start_soon(self._ping)
        if (processes := self.running.processes) is not None:
            monitor = ProcessMonitor(
                self.running,
                processes,
                page_memory_mb=self._page_memory_mb,
                bound_mib=self._lifetime.max_memory_mib,
                on_memory=self._note_memory,
            )
            self.running.relieve = monitor.end_busiest
            self.group.start_soon(monitor.keep)
        await self.running.lost.wait()
        _log.warning("browser_lost", reason=self.running.why_lost, episodes=self._num_active)
        for session in self.sessions:
            session.lose(BrowserLost(self.running.why_lost))
        self.ended.set()

    def _note_memory(self, used_mib: float) -> None:
        self._memory_mib = used_mib
        self.end_if_done()

    async def _ping(self) -> None:
        """A browser that hangs, or whose connection is silently gone, is lost as well."""
        while True:
            await anyio.sleep(_PING_S)
            await self.running.why_gone("")
