"""What is wrong with a file's lines: all of it is found at once, and told in words up to a number."""

from dataclasses import dataclass
from pathlib import Path

from schemas.text import visible

SHOWN = 20
"""Told in words; of the others, how many they are."""
_VALUE = 80


class Unfit(ValueError):
    """A value that cannot be used: says what is wrong with it and what to write instead."""


def shown(value: object) -> str:
    """A value as a problem quotes it, in one short line."""
    return visible(repr(value), _VALUE)


@dataclass(frozen=True, slots=True)
class Problem:
    file: Path
    place: str
    """As in `line 3`; empty: the file as a whole."""
    field: str
    """Empty: the line as a whole."""
    what: str

    def __str__(self) -> str:
        where = (str(self.file), self.place, self.field and f"field {self.field!r}")
        return f"{', '.join(filter(None, where))}: {self.what}"


class Problems:
    """Grows; keeps the first in words and counts the others."""

    def __init__(self, most: int = SHOWN) -> None:
        self.first: list[Problem] = []
        self.number = 0
        self._most = most

    def add(self, problem: Problem) -> None:
        self.number += 1
        if len(self.first) < self._most:
            self.first.append(problem)

    def __bool__(self) -> bool:
        return self.number > 0

    def __str__(self) -> str:
        """A line for each, and one for the rest."""
        return "\n".join([*map(str, self.first), *more_than(self.number, len(self.first))])


def more_than(number: int, shown_: int = SHOWN) -> tuple[str, ...]:
    """The line for those that are not told in words, where there are some."""
    return (f"and {number - shown_:,} more",) if number > shown_ else ()
