"""Which training slots come next, those of blocked sites left out. Pure.

What stands at an index depends on the seed alone. A slot whose site is blocked when its turn comes is skipped for good: its
task comes again in the next round, and a site that is free again gets no flood of what it missed.
"""

from collections.abc import Collection, Container, Mapping

from schemas.ids import EpisodeId, TaskId
from schemas.messages import Split
from trainer.curriculum import Slot, UniformSampler, episode_of

_LOOK_AT_ONCE = 10_000
_LOOKED_AT_AGAIN = 256
"""Admissions before the newest among which a feeder that was killed may have left out some: it admits several at once."""


class TrainingSchedule:
    """Stands at an index of the sampler's endless order."""

    def __init__(self, sampler: UniformSampler, sites: Mapping[TaskId, str], *, demonstrate: bool) -> None:
        self._sampler = sampler
        self._sites = sites
        self._demonstrate = demonstrate
        self._index = 0

    def resume(self, admitted: Collection[EpisodeId]) -> None:
        """Goes to where a feeder stood that had admitted these, short of its last admissions."""
        found: list[int] = []
        index, patience = 0, 2 * len(self._sampler.specs)
        while len(found) < len(admitted) and index - (found[-1] if found else 0) <= patience:
            if self._episode(self._sampler.slot(index)) in admitted:
                found.append(index)
            index += 1
        self._index = found[-_LOOKED_AT_AGAIN - 1] + 1 if len(found) > _LOOKED_AT_AGAIN else 0

    def take(self, count: int, *, admitted: Container[EpisodeId], blocked: Container[str]) -> list[Slot]:
        """At most `count` slots; fewer, or none, when many in a row are of blocked sites: the rest comes the next time."""
        slots: list[Slot] = []
        for _ in range(_LOOK_AT_ONCE):
            if len(slots) == count:
                break
            slot = self._sampler.slot(self._index)
            if self._episode(slot) not in admitted and self._sites[slot.spec.task] not in blocked:
                slots.append(slot)
            self._index += 1
        return slots

    def _episode(self, slot: Slot) -> EpisodeId:
        return episode_of(slot, Split.TRAIN, demonstrate=self._demonstrate)
