"""Actions to the responses, word for word, that demonstrations teach. What is rendered is read back as the same action; where
the tool has no call for it, as those that it is taken apart into."""

from agents.action_space import ActionSpace
from agents.earlier_answers import CLOSING, OPENING
from agents.prompts import prompt_of
from agents.tool import ToolCall, Value
from schemas.messages import Action, ActionKind
from schemas.model_config import ModelConfig

_STANDARD = ActionSpace()
_INSTRUCT = ModelConfig()


def render_action(
    action: Action,
    *,
    thought: str,
    model: ModelConfig = _INSTRUCT,
    grid: int = 1,
    space: ActionSpace = _STANDARD,
) -> str:
    """The response that a demonstration of `action` teaches.

    Args:
        action: its points are rounded to the nearest multiple of `grid`.
        thought: the sentence after `Action:`, on one line.
        model: decides the form of the answer; one that thinks has the sentence as its thought.
        grid: on the 0-1000 scale; 1 keeps whole numbers.
        space: decides the tool and its words.

    Raises:
        ValueError: the space does not offer the action, or an argument of it; or the action lacks one.
    """
    calls = [_call(each, space, grid) for each in space.tool.taken_apart(action)]
    response = prompt_of(model.prompt_version, model.prompt_text).response(thought, calls)
    if model.model_type == "qwen3-think" and CLOSING not in response:
        return f"{OPENING}\n{thought}\n{CLOSING}\n\n{response}"
    return response


def _call(action: Action, space: ActionSpace, grid: int) -> ToolCall:
    known = space.tool.actions.get(action.kind)
    if known is None:
        raise ValueError(f"the {space.actions} actions have no {action.kind.value}")
    if action.kind is ActionKind.SCROLL and action.direction not in space.tool.directions:
        raise ValueError(f"the {space.actions} actions do not scroll {action.direction}")
    written = _target(action, space, grid) | _other_arguments(action, space)
    said = {known.words.get(name, name): value for name, value in written.items()} | dict(known.implies)
    if missing := [name for name in known.needs if name not in said]:
        raise ValueError(f"{known.name} needs {' and '.join(missing)}")
    if left_over := [name for name in said if name not in (*known.needs, *known.may)]:
        raise ValueError(f"{known.name} of the {space.actions} actions takes no {' and '.join(left_over)}")
    return space.tool.call(known, said)


def _target(action: Action, space: ActionSpace, grid: int) -> dict[str, Value]:
    if space.marked:
        elements = {"element_id": action.element, "end_element_id": action.end_element}
        return {name: element for name, element in elements.items() if element is not None}
    points = {"coordinate": action.point, "end_coordinate": action.end_point}
    return {name: [round(value / grid) * grid for value in point] for name, point in points.items() if point is not None}


def _other_arguments(action: Action, space: ActionSpace) -> dict[str, Value]:
    said: dict[str, Value] = {}
    tool = space.tool
    match action.kind:
        case ActionKind.TYPE:
            said = {"text": action.text}
            if action.enter is not tool.presses_enter:
                said["enter"] = action.enter
        case ActionKind.ANSWER | ActionKind.SELECT:
            said = {"text": action.text}
        case ActionKind.NAVIGATE | ActionKind.NEW_TAB:
            said = {"url": action.text} if action.text else {}
        case ActionKind.SCROLL:
            said = {"direction": action.direction}
            if action.amount != (tool.scroll_amount or 1.0):
                said["amount"] = action.amount
        case ActionKind.WAIT:
            said = {"time": action.seconds}
        case ActionKind.PRESS:
            said = {"keys": list(action.keys)}
        case ActionKind.SWITCH_TAB | ActionKind.CLOSE_TAB:
            said = {} if action.tab is None else {"tab": action.tab - 1 + tool.first_tab}
        case ActionKind.READ_PAGE:
            said = {"num_lines": action.num_lines}
        case ActionKind.CLICK | ActionKind.DOUBLE_CLICK | ActionKind.RIGHT_CLICK | ActionKind.DRAG | ActionKind.HOVER:
            pass  # the target is all
        case ActionKind.GO_BACK:
            pass
    return said
