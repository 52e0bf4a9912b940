"""Reads the parameters of a level from a task's website; whatever is wrong gets a sentence that says what to write instead."""

import math
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

from browser_workers.suites import UnknownWebsite

Number = TypeVar("Number", int, float)
_LARGEST_SEED = 2**53 - 1
"""The page's script has to hold it."""
_SHARE = re.compile(r"[0-9]{0,20}[./]?[0-9]{0,20}")
"""A page's address is written by anybody, and a `Fraction` of a large exponent takes hours."""


class Query:
    """Each parameter is read once, by the name that the documentation gives it; `end` refuses those that nobody read."""

    def __init__(self, website: str, query: str) -> None:
        """`website` is what the query stands behind, as in `sokoban:room`."""
        self._website = website
        pairs = parse_qsl(query, keep_blank_values=True)
        self._written = dict(pairs)
        self._read: list[str] = []
        if len(pairs) != len(self._written):
            raise UnknownWebsite(f"{website}?{query} says a parameter twice: write each once")

    @property
    def text(self) -> str:
        """All parameters, as a browser writes them in an address."""
        return urlencode(self._written)

    def seed(self) -> int:
        return self.whole("seed", 0, 0, _LARGEST_SEED)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        wanted = f"a whole number from {low} to {high}"
        return self._number(name, int, default, low, high, wanted)

    def share(self, name: str, default: float, high: float) -> float:
        """Of 1, also as a fraction: `2/3`."""
        wanted = f"a number from 0 to {high:g}, as in {name}=0.2 or {name}=1/5"
        return self._number(name, _share, default, 0.0, high, wanted)

    def reward(self, name: str) -> float:
        """0 where it is not said."""
        return self._number(name, float, 0.0, -10.0, 10.0, f"a number from -10 to 10, as in {name}=-0.01")

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """The first where it is not said."""
        text = self._text(name)
        if text is not None and text not in choices:
            raise self.wrong(name, " or ".join(choices))
        return text or choices[0]

    def wrong(self, name: str, wanted: str) -> UnknownWebsite:
        """What to raise where a value will not do."""
        said = self._written.get(name)
        value = f"{name} is {said!r}" if said is not None else f"{name} is not said"
        return UnknownWebsite(f"{self._website}: {value}: write {wanted}")

    def end(self) -> None:
        for name in self._written:
            if name not in self._read:
                near = get_close_matches(name, self._read, n=1)
                meant = f"; did you mean {near[0]}? Write" if near else ": write"
                raise UnknownWebsite(f"{self._website} has no parameter {name!r}{meant} one of {', '.join(self._read)}")

    def _text(self, name: str) -> str | None:
        self._read.append(name)
        return self._written.get(name)

    def _number(
        self, name: str, read: Callable[[str], Number], default: Number, low: Number, high: Number, wanted: str
    ) -> Number:
        text = self._text(name)
        if text is None:
            return default
        try:
            number = read(text)
        except (ValueError, ZeroDivisionError) as error:
            raise self.wrong(name, wanted) from error
        if not (math.isfinite(number) and low <= number <= high):
            raise self.wrong(name, wanted)
        return number


def _share(text: str) -> float:
    """Raises `ValueError` or `ZeroDivisionError`."""
    if not _SHARE.fullmatch(text):
        raise ValueError("not a decimal number, nor a fraction")
    return float(Fraction(text))
