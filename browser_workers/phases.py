"""Tells whoever watches at which phase an episode's step is. Nothing depends on it, and nothing waits for it."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import anyio

from bus.chain import EpisodeChain
from bus.ports import Bus
from schemas.errors import BusError
from schemas.ids import WorkerId
from schemas.messages import StepPhase

_PATIENCE_S = 0.5
"""While there is no connection."""


@dataclass(frozen=True, slots=True)
class Phases:
    """Of one attempt."""

    bus: Bus
    subject: str
    chain: EpisodeChain
    worker: WorkerId

    async def tell(self, phase: Literal["deciding", "acting"], step: int, policy: WorkerId | None) -> None:
        """`policy`: who answered this step, or the one before."""
        message = StepPhase(
            episode=self.chain.task.episode,
            attempt=self.chain.attempt,
            step=step,
            phase=phase,
            worker=self.worker,
            policy=policy or WorkerId(""),
        )
        # A server whose permissions are older than this message refuses it, once.
        with suppress(BusError), anyio.move_on_after(_PATIENCE_S):
            await self.bus.tell(self.subject, message)
