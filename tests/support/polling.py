"""For what other programs do, of which nobody tells."""

from collections.abc import Awaitable, Callable

import anyio

from tests.deadlines import HANGS_S


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Asks again and again, and returns when it holds. Raises `TimeoutError`."""
    with anyio.fail_after(HANGS_S):
        while True:
            if await holds():
                return
            await anyio.sleep(0.3)
