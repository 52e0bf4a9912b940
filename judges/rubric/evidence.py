"""Chooses the screenshots that a question shows. Pure; the last one of the episode is among them always."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from schemas.messages import Observation, Screenshot


@dataclass(frozen=True, slots=True)
class SeenScreenshot:
    """One distinct screenshot of an episode."""

    screenshot: Screenshot
    steps: tuple[int, ...]
    """All steps at which it was seen, ascending."""

    @property
    def step(self) -> int:
        """The last of them, by which it is named."""
        return self.steps[-1]


def distinct(observations: Sequence[Observation]) -> tuple[SeenScreenshot, ...]:
    """Every screenshot once, in the order in which they were last seen: the state that the episode ended with comes last."""
    steps = dict[bytes, list[int]]()
    screenshots = dict[bytes, Screenshot]()
    data = b""
    for position, observation in enumerate(observations):
        if not (observation.same_screenshot and position > 0):
            data = observation.screenshot.data
        screenshots.setdefault(data, observation.screenshot)
        steps.setdefault(data, []).append(observation.step)
    shots = (SeenScreenshot(screenshots[data], tuple(seen)) for data, seen in steps.items())
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
