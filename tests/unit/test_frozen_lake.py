"""Frozen lakes by value: what is drawn from a seed, how its ice slides, and the best move on it."""

import itertools

import numpy as np
import pytest

from browser_workers.grids.cells import DIRECTIONS, neighbours
from browser_workers.suites.frozen_lake.lake import Lake, distances, draw_lake, draw_slides
from browser_workers.suites.frozen_lake.planning import GAMMA, best_moves, move_values

_SEEDS = range(500)


def lake(seed: int, *, size: int = 4, holes: float = 0.2, slip: float = 0.0, min_moves: int = 4) -> Lake:
    return draw_lake(seed, size=size, holes=holes, slip=slip, min_moves=min_moves)


def test_the_cells_beside_a_cell() -> None:
    assert neighbours(3)[4] == (1, 5, 7, 3)
    assert neighbours(3)[0] == (0, 1, 3, 0)
    assert neighbours(3)[8] == (5, 8, 8, 7)


@pytest.mark.parametrize(("size", "holes", "min_moves"), [(3, 0.0, 4), (4, 0.2, 4), (4, 0.5, 6), (8, 0.2, 8), (8, 0.5, 14)])
def test_every_lake_can_be_crossed(size: int, holes: float, min_moves: int) -> None:
    for seed in _SEEDS:
        drawn = lake(seed, size=size, holes=holes, min_moves=min_moves)
        assert len(drawn.holes) == round(holes * size**2)
        assert drawn.holes.isdisjoint((drawn.start, drawn.goal))
        assert distances(size, drawn.holes, drawn.goal)[drawn.start] == drawn.num_moves >= min_moves


def test_seeds_are_different_lakes_and_the_same_ones_again() -> None:
    drawn = [lake(seed, slip=2 / 3) for seed in _SEEDS]
    assert drawn == [lake(seed, slip=2 / 3) for seed in _SEEDS]
    assert len({(each.holes, each.start, each.goal) for each in drawn}) > 490
    assert {each.num_moves for each in drawn} >= {4, 5, 6, 7, 8}
    assert lake(7) != lake(7, min_moves=5)


def test_a_drawn_lake_stays_what_it_is() -> None:
    """Task files name lakes by their seeds."""
    assert lake(3) == Lake(size=4, holes=frozenset({4, 6, 10}), start=12, goal=2, num_moves=5)


# the ice --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slip", [0.2, 1 / 3, 2 / 3, 0.9])
def test_slides_are_as_frequent_as_they_should_be(slip: float) -> None:
    slides = [slide for seed in range(100) for slide in draw_slides(seed, slip)]
    shares = [slides.count(turn) / len(slides) for turn in (-1, 0, 1)]
    assert shares == pytest.approx([slip / 2, 1 - slip, slip / 2], abs=0.005)


def test_the_slides_of_a_seed_are_always_the_same() -> None:
    assert [draw_slides(5, 2 / 3).count(turn) for turn in (-1, 0, 1)] == [345, 333, 322]
    assert draw_slides(5, 2 / 3)[:10] == (-1, 1, -1, -1, 1, 0, -1, 1, -1, -1)
    assert draw_slides(5, 2 / 3) != draw_slides(6, 2 / 3)
    assert draw_slides(5, 0.0) == ()


# the best move --------------------------------------------------------------------------------------------------------


def test_where_nothing_slips_every_best_move_is_one_nearer() -> None:
    for seed in range(100):
        drawn = lake(seed, size=6, min_moves=6)
        away = distances(6, drawn.holes, drawn.goal)
        moves = best_moves(drawn)
        assert moves.keys() == away.keys() - {drawn.goal}
        assert all(away[neighbours(6)[cell][move]] == away[cell] - 1 for cell, move in moves.items())


@pytest.mark.parametrize("slip", [0.0, 0.3, 2 / 3])
def test_no_other_way_to_play_is_worth_more(slip: float) -> None:
    """All ways to choose one move a cell, each valued by solving its linear equations."""
    for seed in range(3):
        drawn = lake(seed, size=3, holes=0.34, slip=slip, min_moves=3)
        cells = [cell for cell in distances(3, drawn.holes, drawn.goal) if cell != drawn.goal]
        found = best_moves(drawn)
        of_found = _values(drawn, cells, np.array([[found[cell] for cell in cells]]))[0]
        all_ways = np.array(list(itertools.product(range(len(DIRECTIONS)), repeat=len(cells))))
        assert of_found == pytest.approx(_values(drawn, cells, all_ways).max(axis=0), abs=1e-7)
        assert [max(move_values(drawn)[cell]) for cell in cells] == pytest.approx(of_found, abs=1e-7)


def _values(drawn: Lake, cells: list[int], ways: np.ndarray) -> np.ndarray:
    """By way and cell, the expected GAMMA ** (moves to the goal)."""
    to = np.zeros((len(cells), len(DIRECTIONS), len(cells)))
    arrives = np.zeros((len(cells), len(DIRECTIONS)))
    chances = {0: 1 - drawn.slip, -1: drawn.slip / 2, 1: drawn.slip / 2}
    for (row, cell), direction, (turn, chance) in itertools.product(enumerate(cells), range(4), chances.items()):
        there = neighbours(drawn.size)[cell][(direction + turn) % 4]
        if there == drawn.goal:
            arrives[row, direction] += GAMMA * chance
        elif there not in drawn.holes:
            to[row, direction, cells.index(there)] += GAMMA * chance
    rows = np.arange(len(cells))
    return np.linalg.solve(np.eye(len(cells)) - to[rows, ways], arrives[rows, ways][..., None])[..., 0]
