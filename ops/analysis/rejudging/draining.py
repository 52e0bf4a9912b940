"""Waits until a worker has emptied a queue, which may still grow."""

from dataclasses import dataclass

import anyio

from bus.ports import Bus, WorkQueue

_LOOK_S = 0.25


@dataclass
class Remaining:
    """Folded from how many are left at every look; what joins the queue meanwhile counts to the total."""

    left: int = 0
    total: int = 0

    @property
    def done(self) -> int:
        return self.total - self.left

    def note(self, left: int) -> None:
        self.total += max(0, left - self.left)
        self.left = left


async def wait_empty(bus: Bus, queue: WorkQueue, remaining: Remaining) -> None:
    """Returns when nothing is queued and nobody has anything in hand."""
    while True:
        depth = await bus.depth(queue)
        if depth is not None:
            remaining.note(depth.num_pending + depth.num_in_flight)
            if remaining.left == 0:
                return
        await anyio.sleep(_LOOK_S)
