"""Actions in words: a phrase for steps that came without a sentence of their own, the sentence that a demonstration says."""

import json
from collections.abc import Sequence

from agents.plain_text import plain, short
from schemas.messages import Action, ActionKind, Element

_MAX_LABEL = 60
_CHECKED = " (checked)"
_VERBS = {
    ActionKind.CLICK: "Click",
    ActionKind.DOUBLE_CLICK: "Double-click",
    ActionKind.RIGHT_CLICK: "Right-click",
    ActionKind.HOVER: "Point at",
    ActionKind.DRAG: "Drag",
}


def describe(action: Action) -> str:
    """One short phrase."""
    words = (action.kind.value.replace("_", " "), *_words(action))
    return " ".join(word for word in words if word)


def describe_all(actions: Sequence[Action]) -> str:
    """All actions of one answer."""
    return "; ".join(map(describe, actions))


def sentence(action: Action, elements: Sequence[Element]) -> str:
    """One sentence that names the elements it acts on by what stands on them, as a person would.

    >>> okay = Element(id=3, tag="button", text="Okay", box=(0, 0, 40, 20))
    >>> sentence(Action(kind=ActionKind.CLICK, element=3), [okay])
    'Click "Okay".'
    """
    target, end = _named(action.element, elements), _named(action.end_element, elements)
    if not target:
        said = describe(action)
        return f"{said[0].upper()}{said[1:]}."
    match action.kind:
        case ActionKind.TYPE:
            return f"Type {_quoted(action.text)} into {target}."
        case ActionKind.SELECT:
            return f"Select {_quoted(action.text)} in {target}."
        case ActionKind.SCROLL:
            return f"Scroll {action.direction} in {target}."
        case kind:
            verb = _VERBS.get(kind, kind.value.replace("_", " ").capitalize())
            return f"{verb} {target}{f' to {end}' if end else ''}."


def _named(number: int | None, elements: Sequence[Element]) -> str:
    """An element's text in quotation marks; `the` and its tag where it has none; empty: no element is meant."""
    found = next((element for element in elements if element.id == number), None)
    if found is None:
        return ""
    text = found.text.removesuffix(_CHECKED)
    if found.tag == "select":
        # Behind its name, if it has one, stands what is chosen now.
        text = text.partition(": ")[0] if ": " in text else ""
    label = plain(short(text, _MAX_LABEL))
    return _quoted(label) if label else f"the {plain(short(found.tag, _MAX_LABEL))}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _words(action: Action) -> tuple[str, ...]:
    """What stands behind the action's name."""
    start, end = _place("at", action.point, action.element), _place("to", action.end_point, action.end_element)
    words: tuple[str, ...]
    match action.kind:
        case ActionKind.CLICK | ActionKind.DOUBLE_CLICK | ActionKind.RIGHT_CLICK | ActionKind.HOVER | ActionKind.DRAG:
            words = (start, end)
        case ActionKind.TYPE:
            words = (repr(action.text), start, "" if action.enter else "without Enter")
        case ActionKind.SELECT:
            words = (repr(action.text), start)
        case ActionKind.PRESS:
            words = action.keys
        case ActionKind.SCROLL:
            words = (action.direction,)
        case ActionKind.NAVIGATE | ActionKind.ANSWER | ActionKind.NEW_TAB:
            words = (action.text,)
        case ActionKind.SWITCH_TAB | ActionKind.CLOSE_TAB:
            words = () if action.tab is None else (str(action.tab),)
        case ActionKind.WAIT:
            words = (f"{action.seconds:g} s",)
        case ActionKind.READ_PAGE | ActionKind.GO_BACK:
            words = ()
    return words


def _place(preposition: str, point: tuple[float, float] | None, element: int | None) -> str:
    if element is not None:
        return f"{preposition} element {element}"
    return "" if point is None else f"{preposition} [{point[0]:g}, {point[1]:g}]"
