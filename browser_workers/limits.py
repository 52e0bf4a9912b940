"""Limits how many browser operations of each kind one worker has under way at once.

Invariant: a place is held only while its operation goes on. Who waits for one is served in order, may be cancelled at any
time, and spends nothing of the operation's own deadline, which begins with the operation.
"""

from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType

import anyio

from schemas.env_config import HttpPools
from schemas.messages import ActionKind


class Limit:
    """Operations of one kind: `async with` it around each. An operation must not hold two places of one kind."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._places = anyio.Semaphore(size, fast_acquire=True)

    @property
    def num_under_way(self) -> int:
        return self._size - self._places.value

    @property
    def num_waiting(self) -> int:
        return self._places.statistics().tasks_waiting

    async def __aenter__(self) -> None:
        await self._places.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._places.release()


class Limits:
    """Of one worker process; the kinds are those of `HttpPools`."""

    def __init__(self, pools: HttpPools) -> None:
        self.allocate = Limit(pools.allocate)
        self.navigate = Limit(pools.navigate)
        self.screenshot = Limit(pools.screenshot)
        self.ac_tree = Limit(pools.ac_tree)
        self.metadata = Limit(pools.metadata)
        self.page_metadata = Limit(pools.page_metadata)
        self.execute = Limit(pools.execute)
        self.release = Limit(pools.release)

    def action(self, kind: ActionKind) -> AbstractAsyncContextManager[None]:
        """The place that an action needs; none for those that ask nothing of the browser."""
        match kind:
            case ActionKind.NAVIGATE | ActionKind.GO_BACK:
                return self.navigate
            case ActionKind.WAIT | ActionKind.ANSWER:
                return nullcontext()
            case _:
                return self.execute
