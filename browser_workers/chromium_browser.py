"""The browser of one worker process: one Chromium, a fresh context an episode, replaced when it dies or grows old.

A Chromium that is lost ends the episodes that were in it with `BrowserLost`; the next episode starts another. One that has
lived `instance_lifetime_max` takes no more episodes and is closed when its last one ends.
"""

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType

import anyio
import structlog

from browser_workers.browser import Opening
from browser_workers.cdp import CallRefused, Connection, Json, text
from browser_workers.chromium import chromium, find_chromium
from browser_workers.chromium_session import ChromiumSession
from browser_workers.chromium_tab import TabSettings
from schemas.config import BrowserConfig, EnvConfig
from schemas.errors import BrowserLost, PageFailed

_log = structlog.get_logger()
_START_S = 30.0
_CLOSE_S = 8.0
_EPISODES_A_CONTEXT = 100
"""Episodes of a suite that keeps no state before its context, and with it the renderer process, is replaced."""


@dataclass
class _Instance:
    """One running Chromium and the sessions in it."""

    connection: Connection
    retire_at: float
    """Monotonic seconds from which on it takes no more episodes."""
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when it shall end."""
    num_episodes: int = 0
    sessions: dict[str, ChromiumSession] = field(default_factory=dict)
    """By context."""
    parked: list[ChromiumSession] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        return not self.connection.closed.is_set() and time.monotonic() < self.retire_at

    def on_event(self, method: str, params: Json) -> None:
        match method:
            case "Target.attachedToTarget":
                opened = self.sessions.get(text(params, "targetInfo", "browserContextId"))
                if opened is not None:
                    opened.on_window_opened(text(params, "targetInfo", "targetId"), text(params, "sessionId"))
            case "Target.targetDestroyed":
                for session in self.sessions.values():
                    session.on_window_closed(text(params, "targetId"), "the page closed itself")
            case "Target.targetCrashed":
                for session in self.sessions.values():
                    session.on_window_crashed(text(params, "targetId"), f"the page crashed ({text(params, 'status')})")
            case _:
                pass


class ChromiumBrowser:
    """Satisfies `browser_workers.browser.Browser`; open it as a context manager."""

    def __init__(self, browser_config: BrowserConfig, env_config: EnvConfig) -> None:
        self._executable = find_chromium(browser_config.executable)
        self._settings = TabSettings(browser_config, env_config.operation_timeout)
        self._lifetime_s = env_config.instance_lifetime_max * 60.0
        self._lock = anyio.Lock()
        self._instance: _Instance | None = None
        self._stack = AsyncExitStack()
        self.num_launches = 0

    async def __aenter__(self) -> "ChromiumBrowser":
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

    async def _run_instance(self, *, task_status: anyio.abc.TaskStatus[_Instance]) -> None:
        """Raises `BrowserLost` into the caller of `start` when Chromium does not come up."""
        self.num_launches += 1
        # The log lines of a browser are not those of the episode that happened to need it first.
        structlog.contextvars.clear_contextvars()
        async with chromium(self._executable, timeout_s=_START_S) as connection, anyio.create_task_group() as group:
            instance = _Instance(connection, time.monotonic() + self._lifetime_s)
            connection.listen(instance.on_event)
            pages: Json = {"filter": [{"type": "page"}]}
            attach: Json = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
            await connection.call("Target.setDiscoverTargets", {"discover": True} | pages, timeout_s=_START_S)
            await connection.call("Target.setAutoAttach", attach | pages, timeout_s=_START_S)
            task_status.started(instance)
            group.start_soon(self._end_when_lost, instance)
            await instance.ended.wait()
            group.cancel_scope.cancel()

    @staticmethod
    async def _end_when_lost(instance: _Instance) -> None:
        await instance.connection.closed.wait()
        _log.warning("browser_lost", episodes=instance.num_episodes)
        for session in instance.sessions.values():
            session.fail(BrowserLost("the browser ended while it was in use"))
        instance.ended.set()

    # sessions ---------------------------------------------------------------------------------------------------------

    def session(self, opening: Opening) -> AbstractAsyncContextManager[ChromiumSession]:
        return self._session(opening)

    @asynccontextmanager
    async def _session(self, opening: Opening) -> AsyncIterator[ChromiumSession]:
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

    async def _take(self, instance: _Instance, opening: Opening) -> ChromiumSession:
        instance.parked = [session for session in instance.parked if session.reusable]
        for session in instance.parked:
            if opening.keeps_no_state and session.opening.source == opening.source:
                instance.parked.remove(session)
                await session.begin(opening)
                return session
        return await self._create(instance, opening)

    async def _create(self, instance: _Instance, opening: Opening) -> ChromiumSession:
        connection, timeout_s = instance.connection, self._settings.timeout_s
        width, height = self._settings.viewport
        try:
            answer = await connection.call("Target.createBrowserContext", {"disposeOnDetach": True}, timeout_s=timeout_s)
            context = text(answer, "browserContextId")
            connection.post("Browser.setDownloadBehavior", {"behavior": "deny", "browserContextId": context})
            session = ChromiumSession(connection, self._settings, context, opening)
            instance.sessions[context] = session
            page: Json = {"url": "about:blank", "browserContextId": context, "width": width, "height": height}
            # Its window is attached to, and started, by the event that comes before this answer.
            await connection.call("Target.createTarget", page, timeout_s=timeout_s)
            await session.wait_ready()
        except CallRefused as error:
            raise PageFailed(f"no page could be had: {error}") from error
        return session

    async def _give_back(self, instance: _Instance, session: ChromiumSession, *, clean: bool) -> None:
        """Keeps the tab for the next episode where that is allowed; else its context goes, with everything in it."""
        if clean and session.reusable and instance.usable and session.num_episodes < _EPISODES_A_CONTEXT:
            instance.parked.append(session)
            return
        instance.sessions.pop(session.context, None)
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await session.close()
