"""Chooses the screenshots that a question shows. Pure; the last one of the episode is among them always."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from schemas.messages import Observation, Picture


@dataclass(frozen=True, slots=True)
class SeenScreenshot:
    """One distinct picture of an episode."""

    picture: Picture
    steps: tuple[int, ...]
    """All steps at which it was seen, ascending."""

    @property
    def step(self) -> int:
        """The last of them, by which it is named."""
        return self.steps[-1]


def distinct(observations: Sequence[Observation]) -> tuple[SeenScreenshot, ...]:
    """Every picture once, in the order in which they were last seen: the state that the episode ended with comes last."""
    steps = dict[bytes, list[int]]()
    pictures = dict[bytes, Picture]()
    data = b""
    for position, observation in enumerate(observations):
        if not (observation.same_picture and position > 0):
            data = observation.picture.data
        pictures.setdefault(data, observation.picture)
        steps.setdefault(data, []).append(observation.step)
    shots = (SeenScreenshot(pictures[data], tuple(seen)) for data, seen in steps.items())
    return tuple(sorted(shots, key=lambda shot: shot.step))


def spread(shots: Sequence[SeenScreenshot], limit: int) -> tuple[SeenScreenshot, ...]:
    """At most `limit` of them, evenly spread, the first and the last included; of one, the last."""
    if len(shots) <= limit:
        return tuple(shots)
    if limit == 1:
        return (shots[-1],)
    return tuple(shots[round(index * (len(shots) - 1) / (limit - 1))] for index in range(limit))


def evidence(shots: Sequence[SeenScreenshot], needed: Collection[int], limit: int) -> tuple[SeenScreenshot, ...]:
    """The shots whose `step` is needed, and the last; thinned to `limit`."""
    last = len(shots) - 1
    return spread([shot for index, shot in enumerate(shots) if index == last or shot.step in needed], limit)
