"""Which screenshots a published evaluator shows, and in which order. Pure."""

from collections.abc import Iterable, Sequence

from judges.rubric.evidence import SeenScreenshot
from schemas.messages import Observation

_HIGH, _LOW, _DISTANCE = 6, 5, 2


def by_step(observations: Sequence[Observation]) -> tuple[SeenScreenshot, ...]:
    """One for each observation, also where several are equal: published evaluators count them so."""
    shots = list[SeenScreenshot]()
    for position, observation in enumerate(observations):
        repeated = observation.same_screenshot and position > 0
        shots.append(SeenScreenshot(shots[-1].screenshot if repeated else observation.screenshot, (observation.step,)))
    return tuple(shots)


def relevant(scored: Sequence[int], limit: int) -> tuple[int, ...]:
    """Positions of the `limit` highest scores, in their order; of equal ones, the later.

    Where one reaches 6, those below 5 that are more than 2 below the lowest such score among them are left out.
    Source: the Universal Verifier's grouping of screenshots (arXiv 2604.06240).
    """
    best = sorted(range(len(scored)), key=lambda index: (scored[index], index), reverse=True)[:limit]
    high = [scored[index] for index in best if scored[index] >= _HIGH]
    kept = (index for index in best if not high or scored[index] >= _LOW or scored[index] >= min(high) - _DISTANCE)
    return tuple(sorted(kept))


def steps(shown: Iterable[SeenScreenshot]) -> tuple[int, ...]:
    return tuple(shot.step for shot in shown)
