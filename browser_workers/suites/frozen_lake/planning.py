"""The best move on a frozen lake, by value iteration: on a shortest way where nothing slips, else off the holes."""

from functools import lru_cache

from browser_workers.grids.cells import DIRECTIONS, neighbours
from browser_workers.suites.frozen_lake.lake import Lake, distances

GAMMA = 0.99
"""Of two ways that are equally safe, the shorter one is better."""
_CLOSE_ENOUGH = 1e-10
_EQUAL = 1e-9
"""Of moves whose values are nearer than this, the first direction is taken."""


@lru_cache(maxsize=64)
def best_moves(lake: Lake) -> dict[int, int]:
    """By cell from which there is a way, the direction of the greatest expected GAMMA ** (moves to the goal); holes give 0."""
    return {
        cell: next(direction for direction, value in enumerate(moves) if value >= max(moves) - _EQUAL)
        for cell, moves in move_values(lake).items()
    }


def move_values(lake: Lake) -> dict[int, tuple[float, ...]]:
    """By cell from which there is a way, the value of each direction there."""
    beside = neighbours(lake.size)
    # Nearest to the goal first: values spread from there.
    ice = [cell for cell in distances(lake.size, lake.holes, lake.goal) if cell != lake.goal]
    values = dict.fromkeys(range(lake.size**2), 0.0)
    values[lake.goal] = 1.0

    def worth(cell: int, direction: int) -> float:
        ahead, left, right = (values[beside[cell][(direction + turn) % len(DIRECTIONS)]] for turn in (0, -1, 1))
        return GAMMA * ((1 - lake.slip) * ahead + lake.slip / 2 * (left + right))

    change = 1.0
    while change > _CLOSE_ENOUGH:
        change = 0.0
        for cell in ice:
            best = max(worth(cell, direction) for direction in range(len(DIRECTIONS)))
            change = max(change, best - values[cell])
            values[cell] = best
    return {cell: tuple(worth(cell, direction) for direction in range(len(DIRECTIONS))) for cell in ice}
