"""`sokoban:room?seed=<n>`: every box pushed onto a goal."""

from collections.abc import Mapping
from dataclasses import dataclass

from browser_workers.grids.level import Playing
from browser_workers.grids.oracle import cell, cells
from browser_workers.grids.query import Query
from browser_workers.grids.suite import GridSuite
from browser_workers.suites import suite
from browser_workers.suites.sokoban.room import Room, draw_room
from browser_workers.suites.sokoban.search import best_move, position

NAME, PAGE = "sokoban", "room"
_MOST_MOVES = 30


@dataclass(frozen=True, slots=True)
class RoomLevel:
    """Satisfies `browser_workers.grids.level.Level`."""

    room: Room
    playing: Playing
    box_reward: float

    legend = "@ you, + you on a goal, $ box, * box on a goal, . goal, # wall, _ floor"

    @property
    def num_moves(self) -> float:
        return self.room.num_moves

    @property
    def goal(self) -> str:
        asked = "Push the box onto the goal." if len(self.room.boxes) == 1 else "Push every box onto a goal."
        return f"{asked} Boxes can be pushed, one at a time, and never pulled."

    def facts(self) -> Mapping[str, object]:
        room = self.room
        return {
            "size": room.size,
            "walls": sorted(room.walls),
            "goals": sorted(room.goals),
            "boxes": sorted(room.boxes),
            "start": room.player,
            "boxReward": self.box_reward,
        }

    def best_move(self, state: Mapping[str, object]) -> int | None:
        room = self.room
        return best_move(room.size, room.walls, room.goals, position(cell(state, "player"), cells(state, "boxes")))


def read_room(query: Query) -> RoomLevel:
    """Raises `UnknownWebsite`."""
    seed, size = query.seed(), query.whole("size", 6, 5, 8)
    num_boxes = query.whole("boxes", 1, 1, min(size - 4, 3))
    min_moves = query.whole("min_moves", size - 2, 1, 3 * (size - 3))
    # Several boxes, none of them on a goal, take some moves in any room.
    fewest = max(min_moves, 4 * num_boxes)
    room = draw_room(
        seed,
        size=size,
        num_boxes=num_boxes,
        min_moves=min_moves,
        max_moves=query.whole("max_moves", max(2 * size, fewest), fewest, _MOST_MOVES),
    )
    return RoomLevel(room, Playing.read(query), query.reward("box_reward"))


@suite(NAME)
class SokobanSuite(GridSuite):
    def __init__(self) -> None:
        super().__init__(NAME, PAGE, read_room)
