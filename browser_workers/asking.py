"""Asks for the answer to an observation: the policy worker that knows the episode first, any other when that one is silent."""

import time
from collections.abc import AsyncIterator

import anyio

from bus import chain as chains
from bus.chain import EpisodeChain
from bus.ports import Bus, Record
from bus.subjects import Subjects
from schemas.errors import ChainConflict, StreamFull
from schemas.ids import WorkerId
from schemas.messages import StepRequest, StepWake, Task

_FALLBACK_S = 1.0
"""Seconds between looks at the chain for an answer whose live copy was missed."""
_LOYAL_RESENDS = 2
"""Times that a policy worker which took a step is asked whether it still has it, before any other may answer as well."""
_OFFER_S = 1.0
"""Seconds that the policy worker which has an episode's history may take to accept its next step."""


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

    async def answer(self, step: int, observation_seq: int, answers: AsyncIterator[Record]) -> tuple[Record, StepRequest]:
        """The accepted answer to an observation. Wakes policies again, at growing intervals, until it is there."""
        wake = StepWake(episode=self._task.episode, attempt=self._chain.attempt, step=step, observation_seq=observation_seq)
        resend_s, resend_at, num_resends = self._resend_s, time.monotonic() + self._resend_s, 0
        await self._wake(wake, self.policy)
        while True:
            with anyio.move_on_after(_FALLBACK_S):
                record = await anext(answers)
                if isinstance(record.message, StepRequest) and record.message.step == step:
                    return record, record.message
                continue
            pending = await self._chain.pending_answer(step)
            if pending is not None and isinstance(pending.message, StepRequest):
                return pending, pending.message
            if time.monotonic() >= resend_at:
                resend_s, num_resends = 2 * resend_s, num_resends + 1
                resend_at = time.monotonic() + resend_s
                await self._check_owner(observation_seq)
                await self._wake(wake, self.policy if num_resends <= _LOYAL_RESENDS else None)

    async def _wake(self, wake: StepWake, policy: WorkerId | None) -> None:
        """Wakes the policy worker that has the history, or any other when it is absent, silent or declines."""
        if policy and await self._bus.offer(self._subjects.wake(policy), wake, timeout_s=_OFFER_S):
            return
        subject = self._subjects.step_any(self._task.split, wake.episode, wake.attempt, wake.step)
        try:
            await self._bus.append(self._subjects.steps, subject, wake)
        except StreamFull:
            # It is queued already.
            return

    async def _check_owner(self, observation_seq: int) -> None:
        """Raises `ChainConflict` when somebody else went on with the episode, or ended it."""
        newest = await chains.last(self._bus, self._subjects, self._task.episode)
        if newest is None or newest.seq <= observation_seq:
            return
        message = newest.message
        if not isinstance(message, StepRequest) or message.attempt != self._chain.attempt:
            raise ChainConflict(f"{self._task.episode} went on without this worker")
