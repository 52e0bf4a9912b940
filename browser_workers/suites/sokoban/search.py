"""Sokoban's rules and the shortest way to solve it, over positions as integers.

A position is `boxes << SHIFT | player`, boxes a mask of cells: a search holds many of them.
"""

from collections.abc import Iterator
from functools import lru_cache

from browser_workers.grids.cells import DIRECTIONS, neighbours

SHIFT = 6
"""Bits of a player's cell: grids of up to 8 x 8."""
_PLAYER = (1 << SHIFT) - 1
_OPPOSITE = (2, 3, 0, 1)
Cells = frozenset[int]


def mask(cells: Cells) -> int:
    return sum(1 << cell for cell in cells)


def position(player: int, boxes: Cells) -> int:
    return mask(boxes) << SHIFT | player


def boxes_of(found: int) -> Cells:
    boxes = found >> SHIFT
    return frozenset(cell for cell in range(boxes.bit_length()) if boxes >> cell & 1)


def player_of(found: int) -> int:
    return found & _PLAYER


def moved(size: int, walls: int, before: int, direction: int) -> int:
    """The position behind a move; the same one where the move has no effect."""
    beside = neighbours(size)
    boxes, to = before >> SHIFT, beside[before & _PLAYER][direction]
    if walls >> to & 1:
        return before
    if boxes >> to & 1:
        behind = beside[to][direction]
        if (walls | boxes) >> behind & 1:
            return before
        boxes ^= 1 << to | 1 << behind
    return boxes << SHIFT | to


def layers_to_solved(size: int, walls: Cells, goals: Cells) -> Iterator[list[int]]:
    """The positions from which it takes 0, 1, 2 ... moves to solve, by playing backwards: each stands in one layer alone."""
    beside, solid, solved = neighbours(size), mask(walls), mask(goals)
    layer = [solved << SHIFT | cell for cell in range(size * size) if not (solid | solved) >> cell & 1]
    seen = set(layer)
    while layer:
        yield layer
        further: dict[int, None] = dict.fromkeys(before for after in layer for before in _before(beside, solid, after))
        layer = [before for before in further if before not in seen]
        seen.update(layer)


@lru_cache(maxsize=16)
def moves_to_solved(size: int, walls: Cells, goals: Cells) -> dict[int, int]:
    """By position, the moves of the shortest solution; positions that cannot be solved any more are not in it."""
    layers = layers_to_solved(size, walls, goals)
    return {found: num_moves for num_moves, layer in enumerate(layers) for found in layer}


def _before(beside: tuple[tuple[int, int, int, int], ...], solid: int, after: int) -> Iterator[int]:
    boxes, player = after >> SHIFT, after & _PLAYER
    for direction in range(len(DIRECTIONS)):
        back = beside[player][_OPPOSITE[direction]]
        if (solid | boxes) >> back & 1:
            continue
        yield boxes << SHIFT | back
        pushed = beside[player][direction]
        if boxes >> pushed & 1:
            yield (boxes ^ (1 << pushed | 1 << player)) << SHIFT | back


def best_move(size: int, walls: Cells, goals: Cells, here: int) -> int | None:
    """The first direction of a shortest solution; None where there is none any more."""
    known = moves_to_solved(size, walls, goals)
    solid, nearer = mask(walls), known.get(here, 0) - 1
    there = (known.get(moved(size, solid, here, direction)) for direction in range(len(DIRECTIONS)))
    return next((direction for direction, num_moves in enumerate(there) if num_moves == nearer), None)
