"""A person is told of a block, and has until the deadline to lift it: in the browser's own window, or by leave of the site.

browser_config:
  on_block: hook
  block_hook: examples/own_block_hook.py:desk
"""

import os
from pathlib import Path

import anyio

from browser_workers.block_hooks import block_hook
from browser_workers.blockages.page import BlockedPage


@block_hook("desk")
async def desk(page: BlockedPage) -> bool:
    """What the page shows lies in a folder. Whoever has dealt with it removes the picture."""
    picture = Path(os.environ.get("BLOCKS", "blocks")) / f"{page.task.episode}.jpg"
    await anyio.Path(picture.parent).mkdir(parents=True, exist_ok=True)
    await anyio.Path(picture).write_bytes((await page.screenshot()).data)
    print(f"{page.sentence}: see {picture}")
    while True:
        if not await anyio.Path(picture).exists():
            return await page.lets_in()
        await anyio.sleep(1.0)
