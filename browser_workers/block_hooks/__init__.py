"""Who may have a block lifted, one a file: a person who is called, or a service that a site has agreed to.

A hook is told of a page that keeps the agent out, may wait for whom it likes, and says whether the page lets its visitor in:

    @block_hook("call_me")
    async def call_me(page: BlockedPage) -> bool:
        await told(page.sentence, await page.screenshot())
        return await page.lets_in()

It has `browser_config.block_hook_timeout_s` for one block. What it raises is logged, and the block stands.
"""

from collections.abc import Awaitable, Callable

from browser_workers.blockages.page import BlockedPage
from schemas.extensions import BLOCK_HOOKS

BlockHook = Callable[[BlockedPage], Awaitable[bool]]


def block_hook(name: str) -> Callable[[BlockHook], BlockHook]:
    """Declares the hook that `browser_config.block_hook` names so."""
    return lambda made: BLOCK_HOOKS.declare(name, made, None)
