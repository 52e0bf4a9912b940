"""One task over the shop: what is asked, where it begins, what a success looks like to checks and to a rubric, and how it is
done.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from browser_workers.suites.shop.catalogue import Catalogue, Product
from browser_workers.suites.shop.steps import Say, Step
from schemas.messages import Check, CheckKind, CheckMatch

DONE = "done"
"""What tasks that only change something are answered with; no check looks at it."""
CART = (
    "shop.state().cart.map(line => [line.quantity, line.slug, line.colour, line.size]"
    ".filter(Boolean).join(' ')).sort().join('; ')"
)
"""The cart as text, as in `2 plover-jumper Plum M; 3 eider-mug Sea`."""


class Difficulty(Enum):
    """WebGym's three ranges."""

    EASY = range(1, 4)
    MEDIUM = range(4, 7)
    HARD = range(7, 11)


@dataclass(frozen=True, slots=True)
class FactGroup:
    """Facts that are to be read together."""

    description: str
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShopTask:
    template: str
    """Which template it was made from."""
    instruction: str
    start: str
    """Behind `shop:`."""
    difficulty: int
    checks: tuple[Check, ...]
    solution: tuple[Step, ...]
    """Ends with a `Say`."""
    facts: tuple[str | FactGroup, ...] = field(kw_only=True)
    """What pictures have to show as proof, in the page's own words within “ ”; `At the end` means the last picture, `No
    screenshot shows` all of them, and any of what `or` parts will do."""

    @property
    def answer(self) -> str | None:
        """The reference answer; None where only the page counts."""
        last = self.solution[-1]
        assert isinstance(last, Say)
        return None if last.text == DONE else last.text


@dataclass
class Draw:
    """What templates draw from."""

    shop: Catalogue
    random: random.Random

    def product(self, *, such: Callable[[Product], bool] = lambda _: True) -> Product:
        return self.random.choice([product for product in self.shop.products if such(product)])

    def products(self, count: int, *, such: Callable[[Product], bool] = lambda _: True) -> list[Product]:
        return self.random.sample([product for product in self.shop.products if such(product)], count)


Template = Callable[[Draw], ShopTask]


def says(*expected: str, match: CheckMatch = CheckMatch.EQUALS) -> Check:
    """The answer is one of these."""
    return Check(CheckKind.ANSWER, expected, match)


def says_number(number: float) -> Check:
    return says(f"{number:g}" if number == int(number) else f"{number:.2f}", match=CheckMatch.NUMBER)


def stands_at(path: str) -> Check:
    """The visitor has come to this address."""
    return Check(CheckKind.URL, (path,))


def page_has(expression: str, *expected: str, match: CheckMatch = CheckMatch.EQUALS) -> Check:
    return Check(CheckKind.PAGE, expected, match, expression)


def euros(cents: int) -> str:
    """As an answer: `12.50`."""
    return f"{cents / 100:.2f}"


def only_one(values: Sequence[object]) -> bool:
    """Whether the first value stands there once, so that "the cheapest" and the like mean one product."""
    return bool(values) and values.count(values[0]) == 1
