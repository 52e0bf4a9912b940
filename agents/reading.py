"""Arguments of a call to an action of a known kind; None where they do not say enough for the action space."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from agents import aliases, values
from agents.action_space import ActionSpace
from agents.aliases import argument
from agents.calls import BrokenCall, Call
from schemas.messages import Action, ActionKind

_MAX_PRESSES = 20
_TARGET_NAMES = frozenset((*aliases.POINT, *aliases.ELEMENT, "x", "y"))


def read_action(kind: ActionKind, call: Call, space: ActionSpace) -> Action | None:
    return _READERS[kind](call, space)


@dataclass(frozen=True, slots=True)
class _Target:
    """What an action is aimed at, in the space's own way; empty where that was not said."""

    point: tuple[float, float] | None = None
    element: int | None = None

    def __bool__(self) -> bool:
        return self.point is not None or self.element is not None


def _target(call: Call, space: ActionSpace, points: tuple[str, ...], elements: tuple[str, ...]) -> _Target:
    if space.marked:
        return _Target(element=values.position(argument(call, elements)))
    value = argument(call, points)
    if value is None and points is aliases.POINT and "x" in call and "y" in call:
        value = [call["x"], call["y"]]
    return _Target(point=values.point(value))


def _own_target(call: Call, space: ActionSpace) -> _Target:
    return _target(call, space, aliases.POINT, aliases.ELEMENT)


def _pointed(kind: ActionKind, call: Call, space: ActionSpace) -> Action | None:
    target = _own_target(call, space)
    return Action(kind=kind, point=target.point, element=target.element) if target else None


def _drag(call: Call, space: ActionSpace) -> Action | None:
    """From a start to an end; either may be the plain target. With one of them only, where it begins is not known."""
    start = _target(call, space, aliases.START_POINT, aliases.START_ELEMENT)
    end = _target(call, space, aliases.END_POINT, aliases.END_ELEMENT)
    plain = _own_target(call, space)
    start, end = start or plain, end or (plain if start else _Target())
    if not start or not end:
        return None
    return Action(kind=ActionKind.DRAG, point=start.point, element=start.element, end_point=end.point, end_element=end.element)


def _type(call: Call, space: ActionSpace) -> Action | None:
    """The extended set types into the field with the focus when no target is named, and may leave Enter out."""
    target = _own_target(call, space)
    text = values.text(argument(call, aliases.TEXT))
    enter = values.flag(argument(call, aliases.ENTER), default=space.tool.presses_enter)
    aimed = bool(target) or (space.tool.types_at_focus and _TARGET_NAMES.isdisjoint(call))
    if text is None or not aimed or not (enter or space.tool.types_at_focus):
        return None
    return Action(kind=ActionKind.TYPE, point=target.point, element=target.element, text=text, enter=enter)


def _select(call: Call, space: ActionSpace) -> Action | None:
    target = _own_target(call, space)
    option = values.text(argument(call, aliases.OPTION))
    if not target or not option:
        return None
    return Action(kind=ActionKind.SELECT, point=target.point, element=target.element, text=option)


def _scroll(call: Call, space: ActionSpace) -> Action | None:
    """Whatever names no target that can be made out scrolls the window."""
    direction = values.direction(argument(call, aliases.DIRECTION)) or _signed_direction(call)
    if direction not in space.tool.directions:
        return None
    target = _own_target(call, space)
    amount = 1.0 if space.tool.scroll_amount is None else values.share(call.get("amount"), default=space.tool.scroll_amount)
    return Action(kind=ActionKind.SCROLL, point=target.point, element=target.element, direction=direction, amount=amount)


def _signed_direction(call: Call) -> str:
    """Of Qwen's `pixels`, where a positive number is up, and right for `hscroll`; else down, or right."""
    pixels = values.number(call.get("pixels"))
    if call.get("horizontal") is True:
        return "left" if pixels is not None and pixels < 0 else "right"
    return "up" if pixels is not None and pixels > 0 else "down"


def _press(call: Call, space: ActionSpace) -> Action | None:
    together = values.flag(call.get("is_hotkey"), default=False)
    keys = values.keys(argument(call, aliases.KEYS), together=together)
    times = min(values.position(call.get("presses")) or 1, _MAX_PRESSES)
    return None if keys is None else Action(kind=ActionKind.PRESS, keys=tuple(key for key in keys for _ in range(times)))


def _wait(call: Call, space: ActionSpace) -> Action:
    return Action(kind=ActionKind.WAIT, seconds=values.seconds(argument(call, aliases.SECONDS), default=space.tool.wait_s))


def _go_back(call: Call, space: ActionSpace) -> Action:
    return Action(kind=ActionKind.GO_BACK)


def _navigate(call: Call, space: ActionSpace) -> Action | None:
    url = values.text(argument(call, aliases.URL))
    return Action(kind=ActionKind.NAVIGATE, text=url) if url else None


def _new_tab(call: Call, space: ActionSpace) -> Action:
    return Action(kind=ActionKind.NEW_TAB, text=values.text(argument(call, aliases.URL)) or "")


def _switch_tab(call: Call, space: ActionSpace) -> Action | None:
    tab = values.tab(argument(call, aliases.TAB), first=space.tool.first_tab)
    return None if tab is None else Action(kind=ActionKind.SWITCH_TAB, tab=tab)


def _close_tab(call: Call, space: ActionSpace) -> Action | None:
    named = argument(call, aliases.TAB)
    tab = values.tab(named, first=space.tool.first_tab)
    return None if named is not None and tab is None else Action(kind=ActionKind.CLOSE_TAB, tab=tab)


def _read_page(call: Call, space: ActionSpace) -> Action:
    return Action(kind=ActionKind.READ_PAGE, num_lines=values.num_lines(argument(call, aliases.NUM_LINES)))


def _answer(call: Call, space: ActionSpace) -> Action | None:
    """A model that ends the task without an answer says at least whether it reached the goal, unless the tool lets it be."""
    text = values.spoken(argument(call, (*aliases.ANSWER, "status"))) or ""
    ends = bool(text) or (space.tool.ends_without_answer and not isinstance(call, BrokenCall))
    return Action(kind=ActionKind.ANSWER, text=text) if ends else None


_READERS: Mapping[ActionKind, Callable[[Call, ActionSpace], Action | None]] = {
    ActionKind.CLICK: partial(_pointed, ActionKind.CLICK),
    ActionKind.DOUBLE_CLICK: partial(_pointed, ActionKind.DOUBLE_CLICK),
    ActionKind.RIGHT_CLICK: partial(_pointed, ActionKind.RIGHT_CLICK),
    ActionKind.DRAG: _drag,
    ActionKind.TYPE: _type,
    ActionKind.PRESS: _press,
    ActionKind.SELECT: _select,
    ActionKind.HOVER: partial(_pointed, ActionKind.HOVER),
    ActionKind.SCROLL: _scroll,
    ActionKind.WAIT: _wait,
    ActionKind.GO_BACK: _go_back,
    ActionKind.NAVIGATE: _navigate,
    ActionKind.NEW_TAB: _new_tab,
    ActionKind.SWITCH_TAB: _switch_tab,
    ActionKind.CLOSE_TAB: _close_tab,
    ActionKind.READ_PAGE: _read_page,
    ActionKind.ANSWER: _answer,
}
