"""One record as a consumer sees it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from bus.evidence import Evidence
from schemas.messages import AnyMessage, Judgement, Observation, Screenshot, StepRequest, Trajectory

M_co = TypeVar("M_co", bound=AnyMessage, covariant=True)


@dataclass(frozen=True, slots=True)
class Item(Generic[M_co]):
    """A stored message, with where and when it was stored."""

    message: M_co
    stream: str
    subject: str
    seq: int
    """Counts up within `stream`; `After(seq)` reads on behind it."""
    time: datetime
    """When the server stored it, in UTC."""
    data: bytes = field(repr=False)
    """The encoded message, byte for byte."""
    evidence: Evidence = field(repr=False)
    """Reads what the message refers to."""
    fetched: tuple[Screenshot, ...] | None = field(default=None, repr=False)
    """The screenshots, when they came with the item."""

    async def screenshots(self) -> tuple[Screenshot, ...]:
        """What the policy saw: of a trajectory or judgement screenshot k is that of step k, of a step those in its prompt.

        Raises:
            RecordGone: the episode's chain has aged out.
        """
        return self.fetched if self.fetched is not None else await self.evidence.screenshots(self.message)

    async def observations(self) -> tuple[Observation, ...]:
        """Of a trajectory or judgement, in order; empty for other messages. Raises `RecordGone`."""
        trajectory = self._trajectory
        return await self.evidence.observations(trajectory) if trajectory else ()

    async def steps(self) -> tuple[StepRequest, ...]:
        """The policy's answers with their tokens, in order; empty for other messages. Raises `RecordGone`."""
        trajectory = self._trajectory
        return await self.evidence.steps(trajectory) if trajectory else ()

    @property
    def _trajectory(self) -> Trajectory | None:
        match self.message:
            case Trajectory() as trajectory:
                return trajectory
            case Judgement(trajectory=trajectory):
                return trajectory
            case _:
                return None
