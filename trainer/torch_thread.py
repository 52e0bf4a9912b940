"""The one thread that torch and the disk work in, beside the event loop, so that heartbeats go on."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")


class InThread(Protocol):
    """Runs work in a thread, one piece at a time."""

    def __call__(self, work: Callable[[], T]) -> Coroutine[Any, Any, T]: ...


class TorchThread:
    """An `InThread`; one per process."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(1)

    async def __call__(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)
