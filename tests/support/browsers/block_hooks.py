"""Hooks of the tests' own, as a person would write them: each notes what it was told."""

from contextlib import suppress

import anyio

from browser_workers.block_hooks import block_hook
from browser_workers.blockages.page import BlockedPage

TOLD: list[str] = []
OUTLASTS_S = 5.5


@block_hook("lifts")
async def lifts(page: BlockedPage) -> bool:
    screenshot = await page.screenshot()
    TOLD.append(f"{page.task.task}: {page.sentence} at {await page.url()} ({len(screenshot.data)} bytes)")
    return True


@block_hook("gives_up")
async def gives_up(page: BlockedPage) -> bool:
    return await page.lets_in()


@block_hook("fails")
async def fails(_: BlockedPage) -> bool:
    raise ZeroDivisionError("the service sent nonsense")


@block_hook("never")
async def never(_: BlockedPage) -> bool:
    with suppress(ZeroDivisionError):
        await anyio.sleep_forever()
    raise AssertionError("slept for ever")


@block_hook("outlasts")
async def outlasts(_: BlockedPage) -> bool:
    """Longer than the task's own time."""
    await anyio.sleep(OUTLASTS_S)
    return True
