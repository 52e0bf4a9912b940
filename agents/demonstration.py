"""Turns the scripted oracle's step at an observation into the action that a policy would have given."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from agents.action_space import GRID
from schemas.errors import PromptRefused
from schemas.messages import Action, ActionKind, Element, Observation, Screenshot

Mode = Literal["coordinates", "set_of_marks"]
Point = tuple[float, float]
Box = tuple[int, int, int, int]


def demonstrated_action(observation: Observation, mode: Mode = "coordinates") -> Action:
    """The oracle's next step, pointed by coordinates or by the numbers of the elements that it acts on.

    Raises:
        PromptRefused: the page offers no oracle, or no marked element is where the oracle points.
    """
    action = _in_coordinates(observation)
    if mode == "coordinates":
        return action
    # A scroll that points at no element is one of the window.
    find = _found if action.kind is ActionKind.SCROLL else _number
    element, end_element = find(observation, action.point, observation.oracle), find(observation, action.end_point, None)
    return msgspec.structs.replace(action, point=None, end_point=None, element=element, end_element=end_element)


def _in_coordinates(observation: Observation) -> Action:
    if observation.oracle_action is not None:
        return observation.oracle_action
    if observation.oracle is None:
        raise PromptRefused(f"{observation.url} offers no scripted oracle: demonstrate only tasks of a suite that has one")
    x, y, width, height = observation.oracle
    screenshot = observation.screenshot
    point = (x + width / 2) / screenshot.width * GRID, (y + height / 2) / screenshot.height * GRID
    return Action(kind=ActionKind.CLICK, point=point)


def _number(observation: Observation, point: Point | None, target: Box | None) -> int | None:
    found = _found(observation, point, target)
    if found is None and point is not None:
        raise PromptRefused(f"no marked element of {observation.url} is where its oracle points: demonstrate with points")
    return found


def _found(observation: Observation, point: Point | None, target: Box | None) -> int | None:
    if point is None:
        return None
    element = element_at(observation.elements, _pixel(observation.screenshot, point), target)
    return None if element is None else element.id


def _pixel(screenshot: Screenshot, point: Point) -> Point:
    return point[0] / GRID * screenshot.width, point[1] / GRID * screenshot.height


def element_at(elements: Sequence[Element], pixel: Point, target: Box | None = None) -> Element | None:
    """Of the elements that the pixel is in, the one that is most like `target`; without one, the smallest.

    A list that opens above a button has the button's pixels: only its box tells whether the list is meant.
    """
    x, y = pixel
    around = [
        element
        for element in elements
        if 0 <= x - element.box[0] <= element.box[2] and 0 <= y - element.box[1] <= element.box[3]
    ]
    return min(around, key=lambda element: (-_likeness(element.box, target), element.box[2] * element.box[3]), default=None)


def _likeness(box: Box, target: Box | None) -> float:
    """Intersection over union; 0 without a target."""
    if target is None:
        return 0.0
    width = min(box[0] + box[2], target[0] + target[2]) - max(box[0], target[0])
    height = min(box[1] + box[3], target[1] + target[3]) - max(box[1], target[1])
    shared = max(width, 0) * max(height, 0)
    return shared / max(box[2] * box[3] + target[2] * target[3] - shared, 1)
