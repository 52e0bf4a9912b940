"""Where one slot gets its next task from: a preferred queue, and another when there is nothing in it."""

import anyio

from bus.ports import Delivery, Inbox
from bus.settlement import hand_back

_PATIENCE_S = 0.05
"""Seconds for which only the preferred queue is asked."""


class Intake:
    """A slot asks only while it is free, so that no task ever waits behind a busy one."""

    def __init__(self, preferred: Inbox, other: Inbox) -> None:
        self._preferred = preferred
        self._other = other

    async def next(self) -> Delivery:
        with anyio.move_on_after(_PATIENCE_S):
            return await anext(self._preferred)
        won: list[Delivery] = []
        async with anyio.create_task_group() as group:

            async def ask(inbox: Inbox) -> None:
                delivery = await anext(inbox)
                if won:
                    await hand_back(delivery)
                    return
                won.append(delivery)
                group.cancel_scope.cancel()

            group.start_soon(ask, self._preferred)
            group.start_soon(ask, self._other)
        return won[0]
