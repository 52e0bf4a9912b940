"""Sokoban rooms by value: what is drawn from a seed can be solved, in just as many moves as it says."""

import pytest

from browser_workers.grids.cells import neighbours
from browser_workers.suites.sokoban.room import Room, draw_room
from browser_workers.suites.sokoban.search import best_move, mask, moved, moves_to_solved, position

_SEEDS = range(500)


def room(seed: int, *, size: int = 6, num_boxes: int = 1, min_moves: int = 4, max_moves: int = 12) -> Room:
    return draw_room(seed, size=size, num_boxes=num_boxes, min_moves=min_moves, max_moves=max_moves)


def start(drawn: Room) -> int:
    return position(drawn.player, drawn.boxes)


def searched(drawn: Room) -> int | None:
    """The moves of the shortest solution, by plain sets and the rules alone."""
    beside = neighbours(drawn.size)
    seen = {(drawn.player, drawn.boxes)}
    edge, num_moves = list(seen), 0
    while edge:
        if any(boxes == drawn.goals for _, boxes in edge):
            return num_moves
        num_moves += 1
        further = set()
        for player, boxes in edge:
            for direction in range(4):
                to = beside[player][direction]
                pushed = beside[to][direction]
                if to in drawn.walls or (to in boxes and (pushed in boxes or pushed in drawn.walls)):
                    continue
                further.add((to, boxes - {to} | {pushed} if to in boxes else boxes))
        edge = list(further - seen)
        seen |= further
    return None


@pytest.mark.parametrize(
    ("size", "num_boxes", "min_moves", "max_moves"), [(5, 1, 6, 6), (6, 1, 4, 12), (6, 2, 1, 8), (7, 3, 12, 12)]
)
def test_every_room_is_solved_by_its_best_moves(size: int, num_boxes: int, min_moves: int, max_moves: int) -> None:
    for seed in _SEEDS:
        drawn = room(seed, size=size, num_boxes=num_boxes, min_moves=min_moves, max_moves=max_moves)
        assert min_moves <= drawn.num_moves <= max_moves
        assert len(drawn.boxes) == len(drawn.goals) == num_boxes
        assert drawn.boxes.isdisjoint(drawn.goals)
        assert drawn.walls.isdisjoint((drawn.player, *drawn.boxes, *drawn.goals))
        here = start(drawn)
        for _ in range(drawn.num_moves):
            move = best_move(size, drawn.walls, drawn.goals, here)
            assert move is not None
            here = moved(size, mask(drawn.walls), here, move)
        assert here in (position(player, drawn.goals) for player in range(size**2))
        assert best_move(size, drawn.walls, drawn.goals, here) is None


@pytest.mark.parametrize(("size", "num_boxes", "num_seeds"), [(5, 1, 100), (6, 1, 100), (6, 2, 40), (7, 2, 10)])
def test_no_solution_is_shorter(size: int, num_boxes: int, num_seeds: int) -> None:
    for seed in range(num_seeds):
        drawn = room(seed, size=size, num_boxes=num_boxes)
        assert searched(drawn) == drawn.num_moves


def test_a_box_in_a_corner_is_not_solved_any_more() -> None:
    inside = {7, 8, 9, 10, 13, 14, 15, 16, 19, 20, 21, 22, 25, 26, 27, 28}
    empty = Room(
        size=6,
        walls=frozenset(range(36)) - inside,
        goals=frozenset({15}),
        boxes=frozenset({7}),
        player=9,
        num_moves=0,
    )
    assert best_move(6, empty.walls, empty.goals, start(empty)) is None
    assert searched(empty) is None
    assert start(empty) not in moves_to_solved(6, empty.walls, empty.goals)


def test_seeds_are_different_rooms_and_the_same_ones_again() -> None:
    drawn = [room(seed) for seed in _SEEDS]
    assert drawn == [room(seed) for seed in _SEEDS]
    assert len({(each.walls, each.goals, each.boxes, each.player) for each in drawn}) > 490
    assert {each.num_moves for each in drawn} == set(range(4, 13))


def test_a_drawn_room_stays_what_it_is() -> None:
    """Task files name rooms by their seeds."""
    drawn = room(3)
    inside = {8, 9, 10, 13, 14, 15, 16, 19, 20, 21, 25, 26}
    assert drawn == Room(
        size=6,
        walls=frozenset(range(36)) - inside,
        goals=frozenset({13}),
        boxes=frozenset({15}),
        player=20,
        num_moves=7,
    )
