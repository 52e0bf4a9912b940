"""Actions in words, for steps that came without a sentence of their own."""

from schemas.messages import Action, ActionKind


def describe(action: Action) -> str:
    """One short phrase."""
    words = (action.kind.value.replace("_", " "), *_words(action))
    return " ".join(word for word in words if word)


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
