"""The browsers of one worker process: where its provider has them, a fresh context per episode or a session of its own.

A Chromium that is lost, or whose driver is, ends the episodes that were in it with `BrowserLost`; the next episode starts
another. One that is retired takes no more episodes and is closed when its last one ends.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType

import anyio
import structlog

from browser_workers.browser import Opening
from browser_workers.chromium.contexts import open_context
from browser_workers.chromium.instance import Instance
from browser_workers.chromium.instances import Instances
from browser_workers.chromium.process.retirement import Lifetime
from browser_workers.chromium.process.source import source_of
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.chromium.settings import TabSettings
from browser_workers.limits import Limits
from browser_workers.logins import Logins
from browser_workers.network.outside import Network
from browser_workers.network.proxies import egresses_of
from browser_workers.providers.choosing import provider_of
from browser_workers.providers.leases import Leases
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.errors import BrowserLost, PageFailed

_log = structlog.get_logger()
_EPISODES_A_CONTEXT = 100
"""Episodes of a suite that keeps no state before its context, and with it the renderer process, is replaced."""
_MIN_PARKED = 2
"""Pages kept between episodes, at least; more on workers of many slots."""


class PlaywrightBrowser:
    """Satisfies `browser_workers.browser.Browser`; open it as a context manager."""

    def __init__(
        self,
        browser_config: BrowserConfig,
        env_config: EnvConfig,
        context_config: ContextConfig | None = None,
        network: Network = Network(),  # noqa: B008 - a value
        leases: Leases | None = None,
    ) -> None:
        """`leases`: of the provider that `browser_config` names, which is asked on behalf of nobody otherwise."""
        self._leases = leases if leases is not None else Leases(provider_of(browser_config))
        self._settings = TabSettings(
            browser_config,
            env_config,
            context_config or ContextConfig(),
            network,
            egresses_of(browser_config),
            Logins(browser_config.logins_folder),
        )
        self._instances = Instances(
            source_of(browser_config),
            Lifetime.of(browser_config, env_config),
            page_memory_mb=browser_config.page_memory_mb,
        )
        self._limits = Limits(env_config.http_pools)
        self._max_parked = max(_MIN_PARKED, env_config.server_size // 4)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "PlaywrightBrowser":
        await self._stack.enter_async_context(self._leases)
        self._group = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._stack.__aexit__(kind, error, traceback)

    @property
    def num_launches(self) -> int:
        return self._instances.num_launches

    # sessions ---------------------------------------------------------------------------------------------------------

    def session(self, opening: Opening) -> AbstractAsyncContextManager[PlaywrightSession]:
        return self._session(opening)

    @asynccontextmanager
    async def _session(self, opening: Opening) -> AsyncIterator[PlaywrightSession]:
        async with self._leases.lease(opening.episode) as lease:
            instance = await self._instances.ready(self._group, lease)
            instance.begin_episode()
            try:
                session = await self._parked(instance, opening) or await self._created(instance, opening)
                clean = False
                try:
                    yield session
                    clean = True
                finally:
                    await self._give_back(instance, session, clean=clean)
            finally:
                instance.end_episode()

    async def _parked(self, instance: Instance, opening: Opening) -> PlaywrightSession | None:
        """A session that an earlier episode of the same site has left."""
        for session in tuple(instance.parked):
            if session not in instance.parked:
                # Another episode has it by now.
                continue
            if not session.reusable:
                instance.parked.remove(session)
                await self._close(instance, session)
            elif opening.keeps_no_state and session.opening.site is opening.site:
                instance.parked.remove(session)
                if await self._begun(instance, session, opening):
                    return session
        return None

    async def _begun(self, instance: Instance, session: PlaywrightSession, opening: Opening) -> bool:
        begun = False
        try:
            await session.begin(opening)
            begun = True
        except PageFailed as error:
            _log.info("page_not_used_again", error=str(error))
        finally:
            if not begun:
                await self._close(instance, session)
        return begun

    async def _created(self, instance: Instance, opening: Opening) -> PlaywrightSession:
        try:
            return await self._create(instance, opening)
        except PageFailed as error:
            _log.info("page_not_opened", error=str(error))
        return await self._create(instance, opening)

    async def _create(self, instance: Instance, opening: Opening) -> PlaywrightSession:
        running, group = instance.running, instance.group
        async with self._limits.allocate:
            if running.lost.is_set():
                raise BrowserLost(running.why_lost)
            # Shielded: a context that is given up half-way would be nobody's to close.
            with anyio.CancelScope(shield=True):
                context, reach = await open_context(running, group, self._settings, opening)
            session = PlaywrightSession(running, group, self._settings, self._limits, context, opening, reach)
            instance.sessions.add(session)
            try:
                await session.start()
            except BaseException:
                await self._close(instance, session)
                raise
            return session

    async def _give_back(self, instance: Instance, session: PlaywrightSession, *, clean: bool) -> None:
        """Keeps the page for the next episode where that is allowed; else its context goes, with everything in it."""
        leaving: PlaywrightSession | None = session
        if clean and session.reusable and instance.usable and session.num_episodes < _EPISODES_A_CONTEXT:
            instance.parked.append(session)
            leaving = instance.parked.pop(0) if len(instance.parked) > self._max_parked else None
        if leaving is not None:
            await self._close(instance, leaving)

    async def _close(self, instance: Instance, session: PlaywrightSession) -> None:
        instance.sessions.discard(session)
        with anyio.CancelScope(shield=True):
            async with self._limits.release:
                await session.close()
