"""Asks for the answer to an observation: the policy worker that knows the episode first, any other when that one is gone.

A step is in somebody's hands, who is asked now and then whether he still has it, or in the queue, where it is put again at a
steady pace in case it has aged out: after an outage of any length work goes on within seconds. An answer whose live copy was
missed is found on the chain as soon as its worker no longer has the step.
"""

import random
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio

from browser_workers.holder import Holder
from bus.chain import EpisodeChain
from bus.ports import Bus, Offered, Record
from bus.subjects import Subjects
from schemas.errors import NotPermitted, StreamFull
from schemas.ids import WorkerId
from schemas.messages import StepHeld, StepRefusal, StepRequest, StepWake, Task

_OFFER_S = 1.0
"""Seconds that a policy worker may take to say whether it takes a step, or has it."""
_SPREAD = 0.2
"""Share by which resends vary, so that slots that wait for the same policy do not ask in step."""


class Asking:
    """Of one attempt at one episode."""

    def __init__(self, *, bus: Bus, subjects: Subjects, chain: EpisodeChain, resend_s: float) -> None:
        self._bus = bus
        self._subjects = subjects
        self._chain = chain
        self._task: Task = chain.task
        self._resend_s = resend_s
        self.policy: WorkerId | None = None
        """Who answered last: the episode's history is warm there."""

    async def answer(
        self, step: int, observation_seq: int, answers: AsyncIterator[Record]
    ) -> tuple[Record, StepRequest | StepRefusal]:
        """What was accepted behind an observation. Asks again until it is there.

        Raises:
            ChainConflict: somebody else went on with the episode, or ended it.
        """
        wake = StepWake(episode=self._task.episode, attempt=self._chain.attempt, step=step, observation_seq=observation_seq)
        holder = await self._wake(wake, None)
        while True:
            heard = None
            with anyio.move_on_after(holder.pause_s if holder else _spread(self._resend_s)):
                heard = await anext(answers)
            match heard.message if heard else None:
                case StepRequest() | StepRefusal() as said if heard and said.step == step:
                    return heard, said
                case StepHeld() as told if told.step == step:
                    holder = self._held_by(told.worker)
                case None:
                    if holder and holder.keeps(await self._ask(wake, holder.worker), time.monotonic()):
                        continue
                    if (found := await self._chain.pending_answer()) is not None:
                        assert isinstance(found.message, StepRequest | StepRefusal)
                        return found, found.message
                    holder = await self._wake(wake, holder)

    async def _wake(self, wake: StepWake, lost: Holder | None) -> Holder | None:
        """Wakes the policy worker that has the history, or any other when it is absent, silent or declines.

        `lost`: who had the step. Where he is told of it again he says whether he has it after all, which no other knows.
        """
        policy = self.policy if lost is None else None if lost.is_overdue(time.monotonic()) else lost.worker
        if policy and await self._bus.offer(self._subjects.wake(policy), wake, timeout_s=_OFFER_S):
            return self._held_by(policy)
        subject = self._subjects.step_any(self._task.split, wake.episode, wake.attempt, wake.step)
        if not await self._queue(subject, wake) and lost is not None:
            # It is queued, but taken: by him, until the server misses him as well.
            with suppress(NotPermitted):  # by a server whose permissions are older
                await self._bus.purge(self._subjects.steps, subject)
                await self._queue(subject, wake)
        return None

    async def _queue(self, subject: str, wake: StepWake) -> bool:
        """Whether it was not queued already."""
        try:
            await self._bus.append(self._subjects.steps, subject, wake)
        except StreamFull:
            return False
        return True

    async def _ask(self, wake: StepWake, worker: WorkerId) -> Offered:
        question = StepHeld(episode=wake.episode, attempt=wake.attempt, step=wake.step, worker=worker)
        return await self._bus.offer(self._subjects.wake(worker), question, timeout_s=_OFFER_S)

    def _held_by(self, worker: WorkerId) -> Holder:
        return Holder(worker=worker, since=time.monotonic(), patience_s=self._resend_s)


def _spread(seconds: float) -> float:
    return seconds * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311
