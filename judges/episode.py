"""One finished episode before a judge."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from bus.evidence import Evidence
from schemas.errors import NoVerdict, RecordGone
from schemas.messages import NetworkRecord, Observation, StepRequest, Trajectory

T = TypeVar("T")


class JudgedEpisode:
    """A trajectory, and what its chain holds: read once, when a judge first asks for it."""

    def __init__(self, trajectory: Trajectory, evidence: Evidence) -> None:
        self.trajectory = trajectory
        self.surprises: list[Exception] = []
        """What its judges raised that nobody foresaw; each became a missing verdict."""
        self._evidence = evidence
        self._reading = anyio.Lock()
        self._observations: tuple[Observation, ...] | None = None
        self._steps: tuple[StepRequest, ...] | None = None

    async def observations(self) -> tuple[Observation, ...]:
        """Observation k is what the policy saw at step k. Raises `NoVerdict` when the chain has aged out."""
        async with self._reading:
            if self._observations is None:
                self._observations = await _kept(self._evidence.observations, self.trajectory)
            return self._observations

    async def steps(self) -> tuple[StepRequest, ...]:
        """Step k is the policy's answer to observation k. Raises `NoVerdict` when the chain has aged out."""
        async with self._reading:
            if self._steps is None:
                self._steps = await _kept(self._evidence.steps, self.trajectory)
            return self._steps

    async def network(self) -> NetworkRecord | None:
        """The record of its traffic; None: none was made. Raises `NoVerdict` when the chain has aged out."""
        return await _kept(self._evidence.network, self.trajectory)


async def _kept(read: Callable[[Trajectory], Awaitable[T]], trajectory: Trajectory) -> T:
    try:
        return await read(trajectory)
    except RecordGone as error:
        raise NoVerdict(str(error)) from error
