"""Takes a slot's next task from a preferred queue, or from another when there is nothing in it."""

import itertools
import math

import anyio

from bus.ports import Delivery, Inbox

_PATIENCE_S = 0.05
"""Seconds for which only the preferred queue is asked."""


def prefers_evaluation(turn: int, eval_share: float) -> bool:
    """Whether the turn with this number (from 0) is one of evaluation's: the first is, and `eval_share` of all, evenly."""
    return math.ceil((turn + 1) * eval_share) > math.ceil(turn * eval_share)


class Intake:
    """Shared by all slots of a worker. A slot asks only while it is free, so that no task ever waits behind a busy one."""

    def __init__(self, train: Inbox, evaluation: Inbox, *, eval_share: float) -> None:
        self._train = train
        self._evaluation = evaluation
        self._eval_share = eval_share
        self._turns = itertools.count()

    async def next(self) -> Delivery:
        preferred, other = self._train, self._evaluation
        if prefers_evaluation(next(self._turns), self._eval_share):
            preferred, other = other, preferred
        with anyio.move_on_after(_PATIENCE_S):
            return await anext(preferred)
        won: list[Delivery] = []

        async def ask(inbox: Inbox) -> None:
            delivery = await anext(inbox)
            if won:
                delivery.hand_back()
                return
            won.append(delivery)
            group.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(ask, preferred)
                group.start_soon(ask, other)
        except BaseException:
            # Stopped in the very moment in which something came.
            for delivery in won:
                delivery.hand_back()
            raise
        return won[0]
