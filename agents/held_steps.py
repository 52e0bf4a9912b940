"""The steps that a policy worker has in hand, waiting or being answered: each once, however often it comes."""

from collections.abc import Iterator
from contextlib import contextmanager

from schemas.errors import ChainConflict
from schemas.ids import EpisodeId
from schemas.messages import StepHeld, StepWake


class HeldSteps:
    def __init__(self) -> None:
        self._held: set[tuple[EpisodeId, int, int]] = set()

    def __contains__(self, step: StepWake | StepHeld) -> bool:
        return _name(step) in self._held

    def add(self, wake: StepWake) -> None:
        self._held.add(_name(wake))

    def discard(self, wake: StepWake) -> None:
        self._held.discard(_name(wake))

    @contextmanager
    def taken(self, wake: StepWake) -> Iterator[None]:
        """Has the step in hand while open.

        Raises:
            ChainConflict: it is being answered here already.
        """
        if wake in self:
            raise ChainConflict(f"step {wake.step} of {wake.episode} is being answered here already")
        self.add(wake)
        try:
            yield
        finally:
            self.discard(wake)


def _name(step: StepWake | StepHeld) -> tuple[EpisodeId, int, int]:
    return step.episode, step.attempt, step.step
