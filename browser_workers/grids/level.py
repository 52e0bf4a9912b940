"""Defines a level: what a suite of grids draws from a seed, and its page plays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from browser_workers.grids.query import Query

Controls = Literal["buttons", "keys"]


@dataclass(frozen=True, slots=True)
class Playing:
    """How a level is played, whatever its world is."""

    controls: Controls
    """`buttons` for moving, or the arrow keys alone."""
    text: bool
    """The map is in the page as text as well: the name of the board."""
    step_reward: float
    """Of every move."""
    idle_reward: float
    """Of a move that changes nothing, beside."""

    @classmethod
    def read(cls, query: Query) -> "Playing":
        return cls(
            controls=cast(Controls, query.choice("controls", ("buttons", "keys"))),
            text=query.choice("text", ("off", "on")) == "on",
            step_reward=query.reward("step_reward"),
            idle_reward=query.reward("idle_reward"),
        )


class Level(Protocol):
    @property
    def playing(self) -> Playing: ...

    @property
    def num_moves(self) -> float:
        """That it takes at least; more of them where moves go astray."""
        ...

    @property
    def goal(self) -> str:
        """What is to be done, in a sentence or two."""
        ...

    @property
    def legend(self) -> str:
        """What the signs of its text stand for."""
        ...

    def facts(self) -> Mapping[str, object]:
        """What its page's script is given, as JSON."""
        ...

    def best_move(self, state: Mapping[str, object]) -> int | None:
        """The direction of the best move where the page says that it is; None where none leads to the goal."""
        ...


def instruction(level: Level) -> str:
    """What a task over the level asks for."""
    by = {"buttons": "Each press of Up, Down, Left or Right is one move.", "keys": "Each press of an arrow key is one move."}
    text = f" The board's text is the map, row by row: {level.legend}." if level.playing.text else ""
    return f"{level.goal} {by[level.playing.controls]}{text}"
