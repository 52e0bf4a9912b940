"""The browser of one worker process: one Chromium, a fresh context an episode, replaced when it dies or grows old.

A Chromium that is lost, or whose driver is, ends the episodes that were in it with `BrowserLost`; the next episode starts
another. One that has lived `instance_lifetime_max` takes no more episodes and is closed when its last one ends.
"""

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType

import anyio
import structlog
from anyio.abc import TaskGroup, TaskStatus

from browser_workers.browser import Opening
from browser_workers.chromium.executable import find_chromium
from browser_workers.chromium.launch import Chromium, chromium
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.chromium.settings import TabSettings
from schemas.config import BrowserConfig, ContextConfig, EnvConfig
from schemas.errors import BrowserLost

_log = structlog.get_logger()
_START_S = 30.0
_CLOSE_S = 8.0
_EPISODES_A_CONTEXT = 100
"""Episodes of a suite that keeps no state before its context, and with it the renderer process, is replaced."""


@dataclass(eq=False)
class _Instance:
    """One running Chromium and the sessions in it."""

    running: Chromium
    group: TaskGroup
    retire_at: float
    """Monotonic seconds from which on it takes no more episodes."""
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when it shall end."""
    num_episodes: int = 0
    sessions: set[PlaywrightSession] = field(default_factory=set)
    parked: list[PlaywrightSession] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        return not self.running.lost.is_set() and time.monotonic() < self.retire_at

    async def end_when_lost(self) -> None:
        await self.running.lost.wait()
        _log.warning("browser_lost", episodes=self.num_episodes)
        for session in self.sessions:
            session.lose(BrowserLost("the browser ended while it was in use"))
        self.ended.set()


class PlaywrightBrowser:
    """Satisfies `browser_workers.browser.Browser`; open it as a context manager."""

    def __init__(
        self, browser_config: BrowserConfig, env_config: EnvConfig, context_config: ContextConfig | None = None
    ) -> None:
        self._executable = find_chromium(browser_config.executable)
        self._settings = TabSettings(browser_config, env_config, context_config or ContextConfig())
        self._lifetime_s = env_config.instance_lifetime_max * 60.0
        self._lock = anyio.Lock()
        self._instance: _Instance | None = None
        self._stack = AsyncExitStack()
        self.num_launches = 0

    async def __aenter__(self) -> "PlaywrightBrowser":
        self._group = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._stack.__aexit__(kind, error, traceback)

    # instances --------------------------------------------------------------------------------------------------------

    async def _ready(self) -> _Instance:
        async with self._lock:
            instance = self._instance
            if instance is not None and instance.usable:
                return instance
            if instance is not None and not instance.num_episodes:
                instance.ended.set()
            self._instance = await self._group.start(self._run_instance)
            return self._instance

    async def _run_instance(self, *, task_status: TaskStatus[_Instance]) -> None:
        """Raises `BrowserLost` into the caller of `start` when Chromium does not come up."""
        self.num_launches += 1
        # The log lines of a browser are not those of the episode that happened to need it first.
        structlog.contextvars.clear_contextvars()
        async with (
            chromium(self._executable, self._settings.viewport, timeout_s=_START_S) as running,
            anyio.create_task_group() as group,
        ):
            instance = _Instance(running, group, time.monotonic() + self._lifetime_s)
            task_status.started(instance)
            group.start_soon(instance.end_when_lost)
            await instance.ended.wait()
            group.cancel_scope.cancel()

    # sessions ---------------------------------------------------------------------------------------------------------

    def session(self, opening: Opening) -> AbstractAsyncContextManager[PlaywrightSession]:
        return self._session(opening)

    @asynccontextmanager
    async def _session(self, opening: Opening) -> AsyncIterator[PlaywrightSession]:
        instance = await self._ready()
        instance.num_episodes += 1
        try:
            session = await self._take(instance, opening)
            clean = False
            try:
                yield session
                clean = True
            finally:
                await self._give_back(instance, session, clean=clean)
        finally:
            instance.num_episodes -= 1
            if not instance.num_episodes and not instance.usable:
                instance.ended.set()

    async def _take(self, instance: _Instance, opening: Opening) -> PlaywrightSession:
        instance.parked = [session for session in instance.parked if session.reusable]
        for session in instance.parked:
            if opening.keeps_no_state and session.opening.site is opening.site:
                instance.parked.remove(session)
                try:
                    await session.begin(opening)
                except BaseException:
                    await self._give_back(instance, session, clean=False)
                    raise
                return session
        return await self._create(instance, opening)

    async def _create(self, instance: _Instance, opening: Opening) -> PlaywrightSession:
        running, timeout_s = instance.running, self._settings.timeout_s
        width, height = self._settings.viewport
        creating = running.browser.new_context(
            viewport={"width": width, "height": height}, device_scale_factor=1, accept_downloads=False
        )
        context = await running.call("a context", creating, timeout_s=timeout_s)
        session = PlaywrightSession(running, instance.group, self._settings, context, opening)
        instance.sessions.add(session)
        try:
            await session.start()
        except BaseException:
            await self._give_back(instance, session, clean=False)
            raise
        return session

    async def _give_back(self, instance: _Instance, session: PlaywrightSession, *, clean: bool) -> None:
        """Keeps the page for the next episode where that is allowed; else its context goes, with everything in it."""
        if clean and session.reusable and instance.usable and session.num_episodes < _EPISODES_A_CONTEXT:
            instance.parked.append(session)
            return
        instance.sessions.discard(session)
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await session.close()
