"""Looks for held-out pages in what was trained on, by their names and by what they look like."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from bus.chain import read
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.messages import Judgement, Observation, Trajectory


@dataclass(frozen=True)
class Overlap:
    """Held-out pages that training has seen."""

    num_shared: int
    """That were trained on themselves."""
    num_alike: int
    """That begin like one that was trained on, pixel for pixel: some kinds of pages have few looks."""


async def count_overlap(bus: Bus, subjects: Subjects, trained: Iterable[Judgement], held_out: Iterable[Judgement]) -> Overlap:
    """Of what was played; first screenshots are compared by content."""
    seen, new = await _first_looks(bus, subjects, trained), await _first_looks(bus, subjects, held_out)
    known = set(seen.values()) - {None}
    return Overlap(num_shared=len(seen.keys() & new.keys()), num_alike=sum(look in known for look in new.values()))


async def _first_looks(bus: Bus, subjects: Subjects, judgements: Iterable[Judgement]) -> dict[str, bytes | None]:
    played = {judgement.trajectory.task.website: judgement.trajectory for judgement in judgements}
    return {website: await _first_look(bus, subjects, trajectory) for website, trajectory in played.items()}


async def _first_look(bus: Bus, subjects: Subjects, trajectory: Trajectory) -> bytes | None:
    """The digest of its screenshot."""
    record = await read(bus, subjects, trajectory.observations[0]) if trajectory.observations else None
    if record is None or not isinstance(record.message, Observation):
        return None
    return hashlib.sha256(record.message.screenshot.data).digest()
