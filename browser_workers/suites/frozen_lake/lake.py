"""Draws frozen lakes from a seed. Invariant: there is a way to the goal past all holes, and none shorter than `min_moves`."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from browser_workers.grids.cells import neighbours

_NUM_SLIDES = 1000
"""Moves until slides begin anew: more than any episode has."""


@dataclass(frozen=True, slots=True)
class Lake:
    size: int
    holes: frozenset[int]
    start: int
    goal: int
    num_moves: int
    """Of the shortest way."""
    slip: float = 0.0
    """Chance that a move goes to a side instead, half of it to either."""
    slides: tuple[int, ...] = ()
    """By move, what is added to its direction: -1, 0 or 1. Empty on a lake that is not slippery."""


def draw_lake(seed: int, *, size: int, holes: float, slip: float, min_moves: int) -> Lake:
    """The same arguments give the same lake. `holes` is the share of cells that are holes, rounded to whole ones."""
    draw = random.Random(f"frozen_lake/{seed}/{size}/{holes}/{min_moves}")  # noqa: S311
    cells = range(size * size)
    while True:
        open_water = frozenset(draw.sample(cells, round(holes * len(cells))))
        far = [
            (start, goal, away)
            for goal in cells
            if goal not in open_water
            for start, away in distances(size, open_water, goal).items()
            if away >= min_moves
        ]
        if far:
            start, goal, away = draw.choice(far)
            return Lake(size, open_water, start, goal, away, slip, draw_slides(seed, slip))


def draw_slides(seed: int, slip: float) -> tuple[int, ...]:
    if not slip:
        return ()
    draw = random.Random(f"frozen_lake/{seed}/slides")  # noqa: S311
    chances = (draw.random() for _ in range(_NUM_SLIDES))
    return tuple(-1 if chance < slip / 2 else 1 if chance < slip else 0 for chance in chances)


def distances(size: int, holes: Iterable[int], goal: int) -> dict[int, int]:
    """Moves to the goal from every cell that it can be reached from."""
    beside, water = neighbours(size), set(holes)
    found, edge = {goal: 0}, [goal]
    for cell in edge:
        for other in beside[cell]:
            if other not in found and other not in water:
                found[other] = found[cell] + 1
                edge.append(other)
    return found
