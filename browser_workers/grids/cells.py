"""The cells of a square grid, numbered from 0, row by row. Directions are numbers too: the page's script counts them alike."""

from functools import cache

DIRECTIONS = ("up", "right", "down", "left")


@cache
def neighbours(size: int) -> tuple[tuple[int, int, int, int], ...]:
    """By cell and direction; beyond the edge, the cell itself.

    Example: `neighbours(2)[0]` is (0, 1, 2, 0).
    """
    return tuple(
        (
            cell - size if cell >= size else cell,
            cell + 1 if (cell + 1) % size else cell,
            cell + size if cell < size * (size - 1) else cell,
            cell - 1 if cell % size else cell,
        )
        for cell in range(size * size)
    )
