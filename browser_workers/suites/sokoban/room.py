"""Draws Sokoban rooms from a seed. Invariant: a room is solved in exactly `num_moves`, and no box begins on a goal.

Walls and goals are drawn first, then the room is played backwards from its solved positions: whatever is come to can be
solved, in as many moves as it took.
"""

import random
from dataclasses import dataclass
from itertools import islice

from browser_workers.grids.cells import neighbours
from browser_workers.suites.sokoban.search import SHIFT, Cells, boxes_of, layers_to_solved, mask, player_of

_WALLS = 0.2
"""Share of the cells inside of the outer wall."""


@dataclass(frozen=True, slots=True)
class Room:
    size: int
    """Rows and columns, the outer wall included."""
    walls: Cells
    goals: Cells
    boxes: Cells
    player: int
    num_moves: int
    """Of the shortest solution."""


def draw_room(seed: int, *, size: int, num_boxes: int, min_moves: int, max_moves: int) -> Room:
    """The same arguments give the same room, whose shortest solution is of `min_moves` to `max_moves`."""
    draw = random.Random(f"sokoban/{seed}/{size}/{num_boxes}/{min_moves}/{max_moves}")  # noqa: S311
    while True:
        walls = _draw_walls(draw, size)
        floor = [cell for cell in range(size * size) if cell not in walls]
        if len(floor) <= 2 * num_boxes:
            continue
        goals = frozenset(draw.sample(floor, num_boxes))
        layers = list(islice(layers_to_solved(size, walls, goals), max_moves + 1))
        on_goals = mask(goals)
        far = [
            (num_moves, fitting)
            for num_moves, layer in enumerate(layers[min_moves:], start=min_moves)
            if (fitting := [found for found in layer if not found >> SHIFT & on_goals])
        ]
        if far:
            num_moves, fitting = draw.choice(far)
            found = draw.choice(fitting)
            return Room(size, walls, goals, boxes_of(found), player_of(found), num_moves)


def _draw_walls(draw: random.Random, size: int) -> Cells:
    """The outer wall, some inside, and whatever cannot be walked to from the largest part."""
    inside = [row * size + column for row in range(1, size - 1) for column in range(1, size - 1)]
    floor = set(inside) - set(draw.sample(inside, round(_WALLS * len(inside))))
    largest: set[int] = set()
    while floor:
        edge = [min(floor)]
        part = set(edge)
        for cell in edge:
            new = (set(neighbours(size)[cell]) & floor) - part
            part |= new
            edge += sorted(new)
        floor -= part
        largest = max(largest, part, key=len)
    return frozenset(range(size * size)) - largest
