"""The scripted way through a level: asks the page how it stands, and plans from there. Only demonstrations ask."""

from collections.abc import Mapping

import msgspec

from browser_workers.grids.cells import DIRECTIONS
from browser_workers.grids.level import Level
from schemas.messages import Action, ActionKind

_GRID = 1000


class _Stand(msgspec.Struct):
    """What `millraceStand()` in grid.js says."""

    state: dict[str, object]
    buttons: list[tuple[float, float]]
    """By direction, the middle of its button, as shares of the viewport; empty where there are none."""


class GridOracle:
    """Satisfies `browser_workers.browser.Solution`, from wherever the figure has got to."""

    def __init__(self, level: Level) -> None:
        self._level = level

    def expression(self, step: int) -> str:
        return "JSON.stringify(window.millraceStand())"

    def action(self, step: int, located: str) -> Action | None:
        if not located:
            return None
        stand = msgspec.json.decode(located, type=_Stand)
        direction = self._level.best_move(stand.state)
        if direction is None:
            return None
        if not stand.buttons:
            return Action(kind=ActionKind.PRESS, keys=(f"Arrow{DIRECTIONS[direction].capitalize()}",))
        across, down = stand.buttons[direction]
        return Action(kind=ActionKind.CLICK, point=(across * _GRID, down * _GRID))


def cells(state: Mapping[str, object], name: str) -> frozenset[int]:
    """A list of cells in what the page says."""
    return msgspec.convert(state[name], frozenset[int])


def cell(state: Mapping[str, object], name: str) -> int:
    return msgspec.convert(state[name], int)
