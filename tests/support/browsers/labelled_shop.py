"""A labelled set of ways through the demo shop's tasks: what is done, and what it is worth by construction.

No judge had a say in the labels: a success does what its task asks for, a near miss does one thing otherwise, a
hallucination answers what no page said, and a blocked visitor meets a wall.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import msgspec

from browser_workers.browser import Opening
from browser_workers.suites.shop.steps import Choose, Fill, Go, Press, Say, Solution, Step
from browser_workers.suites.shop.suite import BLOCKED, NAME, SOLUTION, ShopSuite
from browser_workers.suites.shop.tasks.draw import shop_tasks
from browser_workers.suites.shop.tasks.lines import task_lines
from browser_workers.suites.shop.tasks.task import Difficulty, ShopTask
from schemas.messages import Task
from tests import builders
from trainer.feeding.task_values import normal_facts

TASKS = shop_tasks(0)
_LINES = task_lines(0)
_MAX_STEPS = 40


class Kind(enum.Enum):
    SUCCESS = "success"
    NEAR_MISS = "near miss"
    HALLUCINATED = "hallucinated answer"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Labelled:
    """One way through one task."""

    name: str
    """As one subject token."""
    number: int
    """Of the task."""
    kind: Kind
    steps: tuple[Step, ...]
    """Ends with a `Say`."""

    @property
    def shop_task(self) -> ShopTask:
        return TASKS[self.number]

    @property
    def difficulty(self) -> Difficulty:
        return next(each for each in Difficulty if self.shop_task.difficulty in each.value)

    def task(self) -> Task:
        """As a task file gives it, to be demonstrated by these steps."""
        line, task = _LINES[self.number], self.shop_task
        joint = "&" if "?" in task.start else "?"
        wall = f"&{BLOCKED}=1" if self.kind is Kind.BLOCKED else ""
        return msgspec.structs.replace(
            builders.task(self.name, max_steps=_MAX_STEPS),
            instruction=task.instruction,
            website=f"{NAME}:{task.start}{joint}{_PLAYED}={self.name}{wall}",
            difficulty=task.difficulty,
            facts=normal_facts(line["evaluator_reference"]),
            reference_answer=task.answer,
            checks=task.checks,
            demonstrate=True,
        )


_PLAYED = "played"


def lucky_guess() -> Labelled:
    """The right total of an order that the agent never saw. No part of the set: to checks a success, without evidence none."""
    return Labelled("lucky", 28, Kind.HALLUCINATED, (TASKS[28].solution[0], TASKS[28].solution[-1]))


class LabelledShop:
    """The shop's suite, where a website names a labelled way instead of a solution."""

    def __init__(self) -> None:
        self._shop = ShopSuite()
        self._ways = {each.name: each for each in (*labelled(), lucky_guess())}

    def resolve(self, page: str, query: str) -> Opening:
        parameters = query.split("&")
        (name,) = (each.removeprefix(f"{_PLAYED}=") for each in parameters if each.startswith(f"{_PLAYED}="))
        rest = "&".join(each for each in parameters if not each.startswith((f"{_PLAYED}=", f"{SOLUTION}=")))
        return replace(self._shop.resolve(page, rest), solution=Solution(self._ways[name].steps))


def labelled() -> tuple[Labelled, ...]:
    return tuple(chain(_successes(), _near_misses(), _hallucinations(), _blocked()))


# the ways -------------------------------------------------------------------------------------------------------------

_SUCCESSES = {
    Difficulty.EASY: (0, 2, 4, 6, 8, 10, 12, 13, 14),
    Difficulty.MEDIUM: (16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 35),
    Difficulty.HARD: (37, 39, 41, 43, 45, 46, 48, 50, 52),
}
_OTHER_WAYS: dict[int, tuple[Step, ...]] = {
    1: (Go("/product/dunlin-tote"), Say("The Dunlin Tote costs €43.00.")),
    11: (Go("/category/bags"), Go("/product/gorse-pen-case"), Go("/product/dunlin-tote"), Say("done")),
    40: (*TASKS[40].solution[:-1], Press("Back to the shop"), Say("done")),
    15: (
        Choose("Colour", "Moss"),
        Press("Add to cart"),
        Press("Go to the cart"),
        Choose("Quantity of Marram Lantern", "0 (remove)"),
        Go("/product/marram-lantern"),
        Choose("Colour", "Cream"),
        Press("Add to cart"),
        Press("Go to the cart"),
        Say("done"),
    ),
}
"""More talk, another way, a look around behind it, a mistake that is put right."""
_WALLED = (0, 4, 9, 17, 21, 25, 40, 42, 49)


def _successes() -> Iterator[Labelled]:
    for number in chain(*_SUCCESSES.values()):
        yield Labelled(f"success-{number}", number, Kind.SUCCESS, TASKS[number].solution)
    for number, steps in _OTHER_WAYS.items():
        yield Labelled(f"detour-{number}", number, Kind.SUCCESS, steps)


_STANDARD = "Standard, 3 to 5 working days (€4.90)"


def _near(number: int, *steps: Step) -> Labelled:
    return Labelled(f"near-{number}", number, Kind.NEAR_MISS, steps)


def _behind(number: int, *steps: Step) -> Labelled:
    """The solution, and then more before the answer."""
    *solution, answer = TASKS[number].solution
    return _near(number, *solution, *steps, answer)


def _instead(number: int, changes: dict[Step, Step | None]) -> Labelled:
    """The solution with some steps done otherwise, or left out."""
    solution = TASKS[number].solution
    assert set(changes) <= set(solution), f"{set(changes) - set(solution)} is no step of task {number}"
    return _near(number, *(done for step in solution if (done := changes.get(step, step)) is not None))


def _ordered_twice(number: int, slug: str, colour: str) -> tuple[Step, ...]:
    """The order of a task, and another of one more product, to the same address."""
    *solution, answer = TASKS[number].solution
    checkout = solution[solution.index(Go("/checkout/address")) :]
    return (*solution, Go(f"/product/{slug}"), Choose("Colour", colour), Press("Add to cart"), *checkout, answer)


def _near_misses() -> Iterator[Labelled]:
    done = Say("done")
    # Another product's price, another fact of the right page, another page, the search instead of the product.
    yield _near(1, Go("/product/gorse-pen-case"), Say("18.00"))
    yield _near(3, Say("Oxlip & Co"))
    yield _near(5, Press("Kitchen"), done)
    yield _near(7, Press("No thanks"), Press("Help"), done)
    yield _near(9, Go("/help/sizes"), Say("53"))
    yield _near(11, Go("/search?q=Dunlin+Tote"), done)
    yield _instead(13, {Press("Accept all"): Press("Only necessary")})
    yield _instead(15, {Choose("Colour", "Cream"): Choose("Colour", "Moss")})
    # Done, and then left or overdone.
    yield _behind(6, Press("Help"))
    yield _behind(10, Go("/"))
    yield _behind(14, Press("Add to cart"))
    # Filters that were not applied, a wrong size, nothing saved, the price of today, another order, the wrong line.
    yield _near(17, Choose("Colour", "Moss"), Say("15"))
    yield _instead(21, {Choose("Size", "XL"): Choose("Size", "L")})
    yield _instead(23, {Press("Save preferences"): None})
    yield _near(27, Press("Outlet"), Press("Try again"), Say("47.50"))
    yield _instead(31, {TASKS[31].solution[0]: Choose("Quantity of Linnet Bird Feeder", "0 (remove)")})
    yield _near(33, Press("No thanks"), done)
    yield _instead(36, {Say("Plover Planter"): Say("Dunlin Desk Tray")})
    yield _instead(30, {TASKS[30].solution[0]: Choose("Quantity of Rowan Desk Tray", "1")})
    yield _instead(32, {Fill("Your email", "odile89@millrace.test"): Fill("Your email", "odile98@millrace.test")})
    # An order that was not placed, one that was only looked at, a wrong colour, the other voucher, no new default.
    yield _instead(40, {Press("Place order"): None})
    yield _instead(42, {Press("Order again"): None})
    yield _instead(44, {Choose("Colour", "Plum"): Choose("Colour", "Ink")})
    yield _near(45, Go("/help/vouchers"), Go("/cart"), Fill("Voucher", "LIGHTHOUSE"), Press("Redeem"), Say("120.00"))
    yield _instead(47, {TASKS[47].solution[-2]: None})
    yield _instead(38, {Press("Express, next working day (€11.50)"): Press(_STANDARD)})
    yield _instead(39, {Press("Use the address in Porto"): Press("Use the address in Coimbra")})
    yield Labelled("near-39-twice", 39, Kind.NEAR_MISS, _ordered_twice(39, "eider-mug", "Sea"))
    yield _instead(51, {Say("Tarn Teapot"): Say("Alder Teapot")})


def _invented(number: int, *steps: Step) -> Labelled:
    return Labelled(f"invented-{number}", number, Kind.HALLUCINATED, steps)


def _hallucinations() -> Iterator[Labelled]:
    # Without looking; then after the right page.
    yield _invented(0, Say("23.75"))
    yield _invented(2, Say("brushed steel"))
    yield _invented(8, Say("25"))
    yield _invented(1, Go("/search?q=Dunlin+Tote"), Say("44.90"))
    yield _invented(9, Go("/help/sizes"), Say("59"))
    yield _invented(16, Say("31"))
    yield _invented(18, Press("No thanks"), Say("Heron Sugar Bowl"))
    yield _invented(24, Press("Stores"), Say("17:45"))
    yield _invented(28, Press("No thanks"), Say("The order of 10 October came to 88.40 euros."))
    yield _invented(34, Go("/help/contact"), Say("0555 014 229"))
    yield _invented(38, Say("The order T-5001 over €41.75 for Oisin Daly is placed."))
    yield _invented(45, Say("131.15"))
    yield _invented(46, *TASKS[46].solution[:4], Say("Ines Falk, Havnegata 9, 7010 Trondheim is now the default address."))
    yield _invented(48, Press("No thanks"), Say("43"))
    yield _invented(50, Say("Gannet Rucksack"))


def _blocked() -> Iterator[Labelled]:
    not_a_robot = Press("I am not a robot")
    ways: tuple[tuple[Step, ...], ...] = (
        (Say("The site denied access."),),
        (not_a_robot, Say("done")),
        (Go("/help/sizes"), Say("55")),
        (not_a_robot, not_a_robot, Say("I could not get past the check.")),
        (Go("/"), Say("done")),
        (Go("/stores"), not_a_robot, Say("14:30")),
        (Say("done"),),
        (not_a_robot, Go("/login"), Say("done")),
        (Go("/search"), Say("17")),
    )
    for number, steps in zip(_WALLED, ways, strict=True):
        yield Labelled(f"blocked-{number}", number, Kind.BLOCKED, steps)
