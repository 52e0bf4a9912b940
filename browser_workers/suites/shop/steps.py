"""Writes down solutions of shop tasks, step by step, by the words on the page, playable as actions.

Pure: `locate` says how to find a step's element in the page, `to_action` what to do there.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from browser_workers.suites.shop.site import ORIGIN
from schemas.messages import Action, ActionKind

_GRID = 1000
_FIELDS = "input:not([type=radio], [type=checkbox]), textarea"
# The page's content counts before its frame; while a dialog is open, nothing but the dialog.
_LOCATE = """(() => {
  const [roles, name] = %s;
  const plain = (text) => text.replace(/\\s+/g, " ").trim();
  const label = (element) => [...element.labels[0].childNodes].filter((node) => !node.contains(element))
    .map((node) => node.textContent).join("");
  const called = (element) => element.getAttribute("aria-label") ??
    (element.labels?.length ? label(element) : element.innerText);
  const modal = document.querySelector("dialog[open]");
  const places = modal ? [modal] : [document.querySelector("main"), document];
  const found = places.flatMap((place) => [...place.querySelectorAll(roles)])
    .find((element) => element.checkVisibility() && plain(called(element)) === name);
  if (!found) return null;
  found.scrollIntoView({ block: "center", behavior: "instant" });
  const box = found.getClientRects()[0];
  return [(box.x + box.width / 2) / innerWidth, (box.y + box.height / 2) / innerHeight].join(" ");
})()"""


@dataclass(frozen=True, slots=True)
class Go:
    """To an address of the shop, as in `/help/delivery`."""

    path: str


@dataclass(frozen=True, slots=True)
class Press:
    """A button, a link, a tick or a radio button."""

    name: str


@dataclass(frozen=True, slots=True)
class Fill:
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Choose:
    label: str
    option: str


@dataclass(frozen=True, slots=True)
class Say:
    """The answer, which ends the task."""

    text: str


Step = Go | Press | Fill | Choose | Say


def locate(step: Step) -> str:
    """JavaScript that scrolls the step's element into view: its centre as two fractions of the viewport; null without one.

    `"0 0"` where a step needs no element.
    """
    match step:
        case Press(name):
            target = ["button, a[href], input[type=checkbox], input[type=radio]", name]
        case Fill(label, _):
            target = [_FIELDS, label]
        case Choose(label, _):
            target = ["select", label]
        case _:
            return '"0 0"'
    return _LOCATE % json.dumps(target)


def to_action(step: Step, located: str) -> Action:
    """The action at what `locate` gave.

    Raises:
        ValueError: nothing on the page has the step's name.
    """
    if not located:
        raise ValueError(f"the page has nothing for {step}")
    x, y = (float(part) * _GRID for part in located.split())
    match step:
        case Go(path):
            return Action(kind=ActionKind.NAVIGATE, text=f"{ORIGIN}{path}")
        case Press():
            return Action(kind=ActionKind.CLICK, point=(x, y))
        case Fill(_, text):
            return Action(kind=ActionKind.TYPE, point=(x, y), text=text, enter=False)
        case Choose(_, option):
            return Action(kind=ActionKind.SELECT, point=(x, y), text=option)
        case Say(text):
            return Action(kind=ActionKind.ANSWER, text=text)


class Solution:
    """Satisfies `browser_workers.browser.Solution`."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps

    def expression(self, step: int) -> str:
        return locate(self._steps[step]) if step < len(self._steps) else "null"

    def action(self, step: int, located: str) -> Action | None:
        try:
            return to_action(self._steps[step], located) if step < len(self._steps) else None
        except ValueError:
            return None
