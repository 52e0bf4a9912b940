"""Lists the names that models use for actions and their arguments.

Our prompts name each in one way only; a model that has learnt another tool falls back to that tool's words, which are
understood. Sources: the `computer_use` tools of Qwen's models and of others, WebGym's server commands.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agents import values
from agents.calls import Call
from agents.tool import Tool
from schemas.messages import ActionKind

POINT = ("coordinate", "coordinates", "point", "point_2d", "position")
START_POINT = ("start_coordinate", "start_coordinates", "start_point", "start_point_2d", "start_box", "start", "from")
END_POINT = (
    "end_coordinate", "end_coordinates", "end_point", "end_point_2d", "end_box", "coordinate2", "coordinate_2",
    "target_coordinate", "end", "to",
)  # fmt: skip
ELEMENT = ("element_id", "element", "id", "index", "mark", "ref")
START_ELEMENT = ("start_element_id", "start_element", "source_element_id", "from_element_id", "start", "from", "source")
END_ELEMENT = ("end_element_id", "end_element", "target_element_id", "to_element_id", "element_id2", "end", "to", "target")
TEXT = ("text", "content", "message", "value")
ANSWER = ("text", "answer", "content", "response", "result")
OPTION = ("text", "option", "label", "value")
URL = ("url", "address")
ENTER = ("enter", "press_enter", "submit")
KEYS = ("keys", "key", "text", "value")
DIRECTION = ("direction", "scroll_direction")
TAB = ("tab", "tab_id", "tab_index", "tab_number", "index", "id")
NUM_LINES = ("num_lines", "lines", "max_lines", "n")
SECONDS = ("time", "seconds", "duration")


@dataclass(frozen=True, slots=True)
class SpelledAction:
    """An action's kind, and its arguments with those that the name implies."""

    kind: ActionKind
    call: Call


_NAMES = {
    ActionKind.CLICK: ("click", "left_click", "tap", "click_element"),
    ActionKind.DOUBLE_CLICK: ("double_click", "doubleclick", "dblclick", "left_double", "triple_click"),
    ActionKind.RIGHT_CLICK: ("right_click", "rightclick", "right_single", "context_click"),
    ActionKind.DRAG: ("drag", "left_click_drag", "drag_and_drop", "drag_to", "mouse_drag"),
    ActionKind.TYPE: ("type", "type_text", "input", "input_text", "fill", "write"),
    ActionKind.PRESS: ("press", "key", "keys", "press_key", "press_keys", "keypress", "key_press", "hotkey", "shortcut"),
    ActionKind.SELECT: ("select", "select_option", "select_dropdown", "choose_option"),
    ActionKind.HOVER: ("hover", "mouse_move", "move_mouse", "move"),
    ActionKind.SCROLL: ("scroll", "scroll_id", "hover_and_scroll", "scroll_page"),
    ActionKind.WAIT: ("wait", "sleep"),
    ActionKind.GO_BACK: ("go_back", "back", "goback"),
    ActionKind.NAVIGATE: ("navigate", "goto", "go_to", "go_to_url", "goto_url", "open_url", "visit"),
    ActionKind.NEW_TAB: ("new_tab", "open_tab", "open_new_tab", "create_tab"),
    ActionKind.SWITCH_TAB: ("switch_tab", "switch_to_tab", "select_tab", "focus_tab"),
    ActionKind.CLOSE_TAB: ("close_tab",),
    ActionKind.READ_PAGE: ("read_page", "get_page_text", "page_text", "get_text", "extract_text"),
    ActionKind.ANSWER: ("answer", "terminate", "finished", "finish", "done", "stop"),
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}
_IMPLYING: Mapping[str, SpelledAction] = {
    "tab_and_enter": SpelledAction(ActionKind.PRESS, {"keys": ["Tab", "Enter"]}),
    "press_enter": SpelledAction(ActionKind.PRESS, {"keys": ["Enter"]}),
    "hscroll": SpelledAction(ActionKind.SCROLL, {"horizontal": True}),
    "scroll_up": SpelledAction(ActionKind.SCROLL, {"direction": "up"}),
    "scroll_down": SpelledAction(ActionKind.SCROLL, {"direction": "down"}),
    "scroll_left": SpelledAction(ActionKind.SCROLL, {"direction": "left"}),
    "scroll_right": SpelledAction(ActionKind.SCROLL, {"direction": "right"}),
}


def spelled_action(call: Call, tool: Tool) -> SpelledAction | None:
    """By the tool's own name for it, else by one that models have learnt."""
    written = call.get("action")
    if not isinstance(written, str):
        return None
    if (own := tool.kind_of(written)) is not None:
        return SpelledAction(_buttoned(own, call, tool), call)
    name = written.strip().lower().replace("-", "_").replace(" ", "_")
    if implying := _IMPLYING.get(name):
        return SpelledAction(implying.kind, {**call, **implying.call})
    kind = _KINDS.get(name)
    return None if kind is None else SpelledAction(_buttoned(kind, call, tool), call)


def _buttoned(kind: ActionKind, call: Call, tool: Tool) -> ActionKind:
    """A click may name its button, or how often: two clicks are one where the tool has no double click."""
    if kind is not ActionKind.CLICK:
        return kind
    if call.get("button") == "right":
        return ActionKind.RIGHT_CLICK
    twice = (values.number(call.get("clicks")) or 1) >= 2
    return ActionKind.DOUBLE_CLICK if twice and ActionKind.DOUBLE_CLICK in tool.actions else kind


def argument(call: Call, names: tuple[str, ...]) -> object:
    """The value under the first of these names that the call has; None without one."""
    return next((call[name] for name in names if call.get(name) is not None), None)
