"""Rules of alerts, one file a subject: conditions judged from what a monitor knows, with what an operator should do. Pure.

@alert("slow_pages")
def slow_pages(look: Look) -> Iterator[Condition]:
    if look.state.steps.per_s(look.now) < 0.1:
        yield warning(Key("slow_pages"), "fewer than 6 steps a minute", "look at the live episodes")
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ops.monitor.alerts.alert import Condition, Key
from ops.monitor.alerts.look import Look
from ops.monitor.passing import PassOver, passing_over
from schemas.extensions import ALERTS, Part

Rule = Callable[[Look], Iterable[Condition]]
_Rule = TypeVar("_Rule", bound=Rule)
_UNREACHABLE = Key("server_unreachable")


def alert(name: str) -> Callable[[_Rule], _Rule]:
    """Declares a rule: a function from what is known at one moment to the conditions that hold."""
    return lambda made: ALERTS.declare(name, made, None)


def conditions(look: Look, rules: Iterable[Part[Rule, None]], *, pass_over: PassOver) -> list[Condition]:
    """All that hold; a rule that raises is passed over."""
    held = list[Condition]()
    for rule in rules:
        with passing_over(pass_over, f"the alerts of {rule.name}"):
            held.extend(rule.made(look))
    # Without a server nothing is heard: what follows from that is not told as well.
    unreachable = [condition for condition in held if condition.key == _UNREACHABLE]
    return unreachable or held
