"""Actions in the words of Online-Mind2Web's submissions: its grammar A, `<VERB> <target> -> <description> | <STATUS>`. Pure.

Source: OSU-NLP-Group/Online-Mind2Web, submission schema v2, its dictionary of verbs. What it has no verb for (a drag, tabs,
reading) is said by the nearest one, and what it was by the description.
"""

from collections.abc import Mapping

from schemas.messages import Action, ActionKind, Observation

SUCCESS, FAILED = "SUCCESS", "FAILED"
_VERBS: Mapping[ActionKind, str] = {
    ActionKind.CLICK: "CLICK",
    ActionKind.DOUBLE_CLICK: "CLICK",
    ActionKind.RIGHT_CLICK: "CLICK",
    ActionKind.DRAG: "CLICK",
    ActionKind.TYPE: "TYPE",
    ActionKind.PRESS: "PRESS_KEY",
    ActionKind.SELECT: "SELECT",
    ActionKind.HOVER: "HOVER",
    ActionKind.SCROLL: "SCROLL",
    ActionKind.WAIT: "WAIT",
    ActionKind.GO_BACK: "GO_BACK",
    ActionKind.NAVIGATE: "NAVIGATE",
    ActionKind.NEW_TAB: "NAVIGATE",
    ActionKind.SWITCH_TAB: "CLICK",
    ActionKind.CLOSE_TAB: "CLICK",
    ActionKind.READ_PAGE: "WAIT",
}
_WORDS: Mapping[ActionKind, str] = {
    ActionKind.CLICK: "click {hit}",
    ActionKind.DOUBLE_CLICK: "double-click {hit}",
    ActionKind.RIGHT_CLICK: "right-click {hit}",
    ActionKind.DRAG: "drag from here to {end}",
    ActionKind.TYPE: "type '{text}' into {hit}{enter}",
    ActionKind.PRESS: "press {keys}",
    ActionKind.SELECT: "select '{text}' in {hit}",
    ActionKind.HOVER: "hover over {hit}",
    ActionKind.SCROLL: "scroll {direction}",
    ActionKind.WAIT: "wait {seconds:g} s",
    ActionKind.GO_BACK: "go back to the previous page",
    ActionKind.NAVIGATE: "direct navigation to an address",
    ActionKind.NEW_TAB: "open a new tab",
    ActionKind.SWITCH_TAB: "switch to {tab}",
    ActionKind.CLOSE_TAB: "close {tab}",
    ActionKind.READ_PAGE: "read the text of the page",
}
_PAGE_FIRST = ("NAVIGATE", "GO_BACK")
"""Verbs that stand behind the page."""


def completed(answer: str) -> str:
    return f"TASK_COMPLETE -> ANSWER: {_line(answer)}".rstrip()


def action_words(action: Action, seen: Observation, *, hit: str, status: str | None) -> str:
    """What was done.

    Args:
        seen: before it.
        hit: what its input reached, as in `button "Save"`; empty: that is not known.
        status: of it; None: it has none.
    """
    verb, target = _VERBS[action.kind], _target(action, seen)
    head = f"{target} -> {verb}" if verb in _PAGE_FIRST else f"{verb} {target}"
    words = _line(_description(action, seen, hit or "the element there"))
    return f"{head} -> {words}" + (f" | {status}" if status else "")


def _target(action: Action, seen: Observation) -> str:
    return _place(seen, action.point, action.element) or "page"


def _place(seen: Observation, point: tuple[float, float] | None, element: int | None) -> str:
    """In pixels of the screenshot."""
    box = next((each.box for each in seen.elements if each.id == element), None) if element is not None else None
    if box is not None:
        return f"coords({box[0] + box[2] // 2}, {box[1] + box[3] // 2})"
    if point is None:
        return ""
    sizes = (seen.screenshot.width, seen.screenshot.height)
    x, y = (min(max(round(size * value / 1000), 0), max(size - 1, 0)) for size, value in zip(sizes, point, strict=True))
    return f"coords({x}, {y})"


def _description(action: Action, seen: Observation, hit: str) -> str:
    return _WORDS[action.kind].format(
        hit=hit,
        text=action.text,
        enter=" and press Enter" if action.enter else "",
        end=_place(seen, action.end_point, action.end_element) or "the place that was named",
        keys=", then ".join(action.keys),
        direction=action.direction,
        seconds=action.seconds,
        tab=f"tab {action.tab}" if action.tab else "the present tab",
    )


def _line(text: str) -> str:
    return " ".join(text.split())
