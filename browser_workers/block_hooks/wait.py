"""Calls nobody: watches the page until somebody has lifted its block, as a person at the browser's own window can."""

import anyio

from browser_workers.block_hooks import block_hook
from browser_workers.blockages.page import BlockedPage

_PAUSE_S = 1.0


@block_hook("wait")
async def wait(page: BlockedPage) -> bool:
    while True:
        if await page.lets_in():
            return True
        await anyio.sleep(_PAUSE_S)
