"""OpenWebRL's thirteen tools: every action is a function of its own, and points at the screenshot."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from agents.tool import Tool, ToolAction, Value
from agents.vocabularies import vocabulary
from schemas.errors import ConfigurationError
from schemas.messages import Action, ActionKind

_POINT = {"type": "array", "items": {"type": "number"}, "description": "[x, y]"}
_SCROLL_AMOUNT = 0.5
_WAIT_S = 3.0
_TARGET = {"coordinate": "point_2d"}


@dataclass(frozen=True, slots=True)
class _Function:
    """What the model is told of one tool."""

    name: str
    does: str
    needs: Mapping[str, Mapping[str, object]]
    may: Mapping[str, Mapping[str, object]]

    @property
    def definition(self) -> str:
        """JSON on one line."""
        parameters = {"type": "object", "properties": {**self.needs, **self.may}, "required": list(self.needs)}
        function = {"name": self.name, "description": self.does, "parameters": parameters}
        return json.dumps({"type": "function", "function": function}, ensure_ascii=False)

    def action(self, kind: ActionKind, words: Mapping[str, str] | None = None, **implies: Value) -> ToolAction:
        return ToolAction(kind, self.name, self.does, tuple(self.needs), tuple(self.may), words or {}, implies)


def _text(description: str) -> Mapping[str, object]:
    return {"type": "string", "description": description}


_CLICK = _Function(
    "click",
    "click at a point",
    {"point_2d": _POINT},
    {
        "clicks": {"type": "integer", "enum": [1, 2], "description": "2: a double click; 1 if left out"},
        "button": {"type": "string", "enum": ["left", "right"], "description": "left if left out"},
    },
)
_WRITE = _Function(
    "write",
    "replace what the field with the focus holds; Enter is not pressed",
    {"message": _text("what to write")},
    {},
)
_PRESS_KEYS = _Function(
    "press_keys",
    "press keys one after the other, or all at once",
    {"keys": {"type": "array", "items": {"type": "string"}, "description": 'as in ["Enter"]'}},
    {
        "is_hotkey": {"type": "boolean", "description": 'all at once, as for ["Control", "a"]; false if left out'},
        "presses": {"type": "integer", "description": "how often; once if left out"},
    },
)
_SCROLL = _Function(
    "scroll",
    "scroll the page, or what is at a point",
    {"direction": {"type": "string", "enum": ["up", "down", "left", "right"], "description": "where to"}},
    {
        "amount": {"type": "number", "description": "share of the window, from 0 to 1; 0.5 if left out"},
        "point_2d": _POINT,
    },
)
_WAIT = _Function("wait", "do nothing for a while", {}, {"seconds": {"type": "number", "description": "3 if left out"}})
_DONE = _Function("done", "end the task", {"response": _text("the answer, whole, or why there is none")}, {})
_GOTO_URL = _Function("goto_url", "open an address", {"url": _text("http or https")}, {})
_GO_BACK = _Function("go_back", "to the page before", {}, {})
_DRAG = _Function(
    "drag", "hold the mouse button down from one point to another", {"start_point_2d": _POINT, "end_point_2d": _POINT}, {}
)
_HOVER = _Function("hover", "move the pointer to a point", {"point_2d": _POINT}, {})
_NEW_TAB = _Function("new_tab", "open an empty tab", {}, {})
_SWITCH_TAB = _Function(
    "switch_tab", "show another tab", {"tab_index": {"type": "integer", "description": "its number; they count from 0"}}, {}
)
_CLOSE_TAB = _Function("close_tab", "close the tab that is shown", {}, {})
_FUNCTIONS = (
    _CLICK, _WRITE, _PRESS_KEYS, _SCROLL, _WAIT, _DONE, _GOTO_URL, _GO_BACK, _DRAG, _HOVER, _NEW_TAB, _SWITCH_TAB, _CLOSE_TAB,
)  # fmt: skip
_ACTIONS = (
    _CLICK.action(ActionKind.CLICK, _TARGET),
    _CLICK.action(ActionKind.DOUBLE_CLICK, _TARGET, clicks=2),
    _CLICK.action(ActionKind.RIGHT_CLICK, _TARGET, button="right"),
    _WRITE.action(ActionKind.TYPE, {"text": "message"}),
    _PRESS_KEYS.action(ActionKind.PRESS),
    _SCROLL.action(ActionKind.SCROLL, _TARGET),
    _WAIT.action(ActionKind.WAIT, {"time": "seconds"}),
    _DONE.action(ActionKind.ANSWER, {"text": "response"}),
    _GOTO_URL.action(ActionKind.NAVIGATE),
    _GO_BACK.action(ActionKind.GO_BACK),
    _DRAG.action(ActionKind.DRAG, {"coordinate": "start_point_2d", "end_coordinate": "end_point_2d"}),
    _HOVER.action(ActionKind.HOVER, _TARGET),
    _NEW_TAB.action(ActionKind.NEW_TAB),
    _SWITCH_TAB.action(ActionKind.SWITCH_TAB, {"tab": "tab_index"}),
    _CLOSE_TAB.action(ActionKind.CLOSE_TAB),
)


@vocabulary("openwebrl")
def openwebrl(*, marked: bool) -> Tool:
    """Raises `ConfigurationError` for marks: its functions take points."""
    if marked:
        raise ConfigurationError(
            "the openwebrl actions point at the screenshot: write coordinates for context_config.interaction_mode"
        )
    return Tool(
        name="",
        actions={action.kind: action for action in _ACTIONS},
        definition="\n".join(function.definition for function in _FUNCTIONS),
        example='{"name": "click", "arguments": {"point_2d": [x, y]}}',
        directions=("up", "down", "left", "right"),
        types_at_focus=True,
        presses_enter=False,
        scroll_amount=_SCROLL_AMOUNT,
        wait_s=_WAIT_S,
        ends_without_answer=True,
        first_tab=0,
        taken_apart=_taken_apart,
        most_calls=3,
    )


def _taken_apart(action: Action) -> tuple[Action, ...]:
    """Text goes to the field with the focus: it is clicked first, and Enter is pressed last. A new tab is empty."""
    if action.kind is ActionKind.NEW_TAB and action.text:
        return (Action(kind=ActionKind.NEW_TAB), Action(kind=ActionKind.NAVIGATE, text=action.text))
    if action.kind is not ActionKind.TYPE:
        return (action,)
    focus = () if action.point is None else (Action(kind=ActionKind.CLICK, point=action.point),)
    enter = (Action(kind=ActionKind.PRESS, keys=("Enter",)),) if action.enter else ()
    return (*focus, msgspec.structs.replace(action, point=None, enter=False), *enter)
