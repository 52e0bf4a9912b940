"""Raw model output to an action, and back. Reading never fails: what cannot be understood is a wait of two seconds."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from schemas.messages import Action, ActionKind

GRID = 1000.0
_MAX_WAIT_S = 60.0
_MAX_THOUGHT = 300
_FALLBACK = Action(kind=ActionKind.WAIT, seconds=2.0)

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_ACTION_LINE = re.compile(r"^\s*Action:[ \t]*(\S.*?)\s*$", re.MULTILINE)
_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_LOOSE_NAME = re.compile(r"""["']?\baction\b["']?\s*[:=]\s*["']?([A-Za-z_]+)""")
_LOOSE_POINT = re.compile(rf"""["']?coordinates?["']?\s*[:=]\s*[\[(]?\s*({_NUMBER}(?:\s*,\s*{_NUMBER})*)""")
_LOOSE_TEXT = re.compile(
    r"""["']?\b(text|url|direction|time)\b["']?\s*[:=]\s*(?:"((?:[^"\\]|\\.)*)"?|'([^']*)'?|([^\s,}\]]+))"""
)

_KINDS = {
    "left_click": ActionKind.CLICK,
    "click": ActionKind.CLICK,
    "type": ActionKind.TYPE,
    "hover": ActionKind.HOVER,
    "mouse_move": ActionKind.HOVER,
    "scroll": ActionKind.SCROLL,
    "wait": ActionKind.WAIT,
    "go_back": ActionKind.GO_BACK,
    "back": ActionKind.GO_BACK,
    "navigate": ActionKind.NAVIGATE,
    "goto": ActionKind.NAVIGATE,
    "answer": ActionKind.ANSWER,
}


@dataclass(frozen=True, slots=True)
class Parsed:
    action: Action
    parsed: bool
    """False: nothing could be understood and `action` is the fallback."""
    thought: str
    """The sentence after `Action:`, or empty."""


def parse_response(response: str) -> Parsed:
    """Reads the first tool call of a response; anything before the end of a `<think>` block is left out. Never raises."""
    said = response.rpartition("</think>")[2]
    thought = _thought(said)
    for arguments in _candidates(said):
        action = _action(arguments)
        if action is not None:
            return Parsed(action, True, thought)
    return Parsed(_FALLBACK, False, thought)


def render_action(
    action: Action,
    *,
    thought: str,
    prompt_version: Literal["vanilla", "complete"] = "vanilla",
    grid: int = 1,
) -> str:
    """The response, word for word, that a demonstration of `action` teaches.

    Args:
        action: its point is rounded to the nearest multiple of `grid`.
        thought: the sentence after `Action:`, on one line.
        prompt_version: `complete` also gets empty Memory and Progress, and the thought as its Intention.
        grid: on the 0-1000 scale; 1 keeps whole numbers.
    """
    arguments: dict[str, str | float | list[int]] = {"action": _name(action.kind)}
    if action.point is not None:
        arguments["coordinate"] = [round(value / grid) * grid for value in action.point]
    match action.kind:
        case ActionKind.TYPE | ActionKind.ANSWER:
            arguments["text"] = action.text
        case ActionKind.NAVIGATE:
            arguments["url"] = action.text
        case ActionKind.SCROLL:
            arguments["direction"] = action.direction
        case ActionKind.WAIT:
            arguments["time"] = action.seconds
        case ActionKind.CLICK | ActionKind.HOVER | ActionKind.GO_BACK:
            pass
    call = json.dumps({"name": "computer_use", "arguments": arguments}, ensure_ascii=False)
    head = (
        f'Memory: {{}}\nProgress: {{"done": [], "left": []}}\nIntention: {thought}\n' if prompt_version == "complete" else ""
    )
    return f"{head}Action: {thought}\n<tool_call>\n{call}\n</tool_call>"


def _name(kind: ActionKind) -> str:
    return "left_click" if kind is ActionKind.CLICK else kind.value


def _thought(said: str) -> str:
    before_call = said.partition("<tool_call>")[0]
    lines = _ACTION_LINE.findall(before_call)
    return str(lines[-1])[:_MAX_THOUGHT] if lines else ""


def _candidates(said: str) -> list[Mapping[str, object]]:
    """Arguments of possible calls: well-formed ones first, then what loose reading finds."""
    calls = [str(body) for body in _CALL.findall(said)] or [said]
    strict = [arguments for body in calls if (arguments := _strict(body)) is not None]
    return strict or [_loose(body) for body in calls]


def _strict(body: str) -> Mapping[str, object] | None:
    """The arguments of the first JSON object in `body`, if it is a call."""
    start = body.find("{")
    if start < 0:
        return None
    value = _json(lambda: json.JSONDecoder(strict=False).raw_decode(body, start)[0])
    if not isinstance(value, dict):
        return None
    inner = value.get("arguments", value)
    if isinstance(inner, str):
        quoted = inner
        inner = _json(lambda: json.loads(quoted, strict=False))
    return inner if isinstance(inner, dict) and "action" in inner else None


def _json(read: Callable[[], object]) -> object:
    try:
        return read()
    except (ValueError, RecursionError):
        return None


def _loose(body: str) -> Mapping[str, object]:
    """Fields of a call whose JSON is broken: unquoted, cut off, wrongly bracketed."""
    found: dict[str, object] = {}
    if name := _LOOSE_NAME.search(body):
        found["action"] = name[1]
    if point := _LOOSE_POINT.search(body):
        found["coordinate"] = point[1]
    for key, double, single, bare in _LOOSE_TEXT.findall(body):
        found.setdefault(key, _unescaped(double) if double else single or bare)
    return found


def _unescaped(text: str) -> str:
    value = _json(lambda: json.loads(f'"{text}"', strict=False))
    return value if isinstance(value, str) else text


def _action(arguments: Mapping[str, object]) -> Action | None:
    name = arguments.get("action")
    kind = _KINDS.get(name.strip().lower()) if isinstance(name, str) else None
    point = _point(arguments.get("coordinate", arguments.get("coordinates")))
    text = _text(arguments.get("url" if kind is ActionKind.NAVIGATE else "text"))
    action: Action | None = None
    match kind:
        case ActionKind.CLICK | ActionKind.HOVER if point is not None:
            action = Action(kind=kind, point=point)
        case ActionKind.TYPE if point is not None and text is not None:
            action = Action(kind=kind, point=point, text=text)
        case ActionKind.NAVIGATE | ActionKind.ANSWER if text:
            action = Action(kind=kind, text=text)
        case ActionKind.SCROLL:
            action = Action(kind=kind, point=point, direction=_direction(arguments.get("direction")))
        case ActionKind.WAIT:
            action = Action(kind=kind, seconds=_seconds(arguments.get("time")))
        case ActionKind.GO_BACK:
            action = Action(kind=kind)
    return action


def _point(value: object) -> tuple[float, float] | None:
    """A point, or the centre of a box, inside the grid; None for anything else."""
    if isinstance(value, str):
        value = re.findall(_NUMBER, value)
    if not isinstance(value, list):
        return None
    numbers = [number for item in value if (number := _number(item)) is not None]
    if len(numbers) != len(value):
        return None
    if len(numbers) == 4:
        numbers = [(numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2]
    if len(numbers) != 2:
        return None
    return _inside(numbers[0]), _inside(numbers[1])


def _inside(value: float) -> float:
    return min(max(value, 0.0), GRID)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(value: object) -> str | None:
    """Text that can be stored as UTF-8: lone surrogates, which JSON escapes can spell, are replaced."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _direction(value: object) -> str:
    return "up" if isinstance(value, str) and value.strip().lower() == "up" else "down"


def _seconds(value: object) -> float:
    number = _number(value)
    return 2.0 if number is None else min(max(number, 0.0), _MAX_WAIT_S)
