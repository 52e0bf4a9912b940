"""Browsers, seen where a key is consumed."""

from collections.abc import Callable

import anyio

from browser_workers.chromium.observing import Observer
from browser_workers.chromium.process.retirement import Lifetime
from browser_workers.chromium.settings import TabSettings
from browser_workers.limits import Limit, Limits
from schemas.config import Config


def places(pool: str) -> Callable[[Config], object]:
    """Operations of a kind that are let in at once."""

    async def counted(limit: Limit) -> int:
        async def hold() -> None:
            async with limit:
                await anyio.sleep_forever()

        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(hold)
            await anyio.wait_all_tasks_blocked()
            found = limit.num_under_way
            group.cancel_scope.cancel()
        return found

    return lambda config: anyio.run(counted, getattr(Limits(config.env_config.http_pools), pool))


def operation_deadline(config: Config) -> object:
    return _tab(config).timeout_s


def tree_is_rich(config: Config) -> object:
    return Observer(_tab(config), Limits(config.env_config.http_pools))._accessibility._rich


def browser_age(config: Config) -> object:
    return Lifetime.of(config.browser_config, config.env_config).max_age_s


def _tab(config: Config) -> TabSettings:
    return TabSettings(config.browser_config, config.env_config, config.context_config)
