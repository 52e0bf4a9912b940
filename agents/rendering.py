"""Actions to the responses, word for word, that demonstrations teach. What is rendered is read back as the same action."""

import json

from agents.action_space import ActionSpace
from agents.prompts import prompt_of
from schemas.messages import Action, ActionKind
from schemas.model_config import ModelConfig

_STANDARD = ActionSpace()
_INSTRUCT = ModelConfig()
_Value = str | float | bool | list[int] | list[str]


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
    known = space.tool.actions.get(action.kind)
    if known is None:
        raise ValueError(f"the {space.actions} actions have no {action.kind.value}")
    if action.kind is ActionKind.SCROLL and action.direction not in space.tool.directions:
        raise ValueError(f"the {space.actions} actions do not scroll {action.direction}")
    said = _target(action, space, grid) | _other_arguments(action)
    if missing := [name for name in known.needs if name not in said]:
        raise ValueError(f"{known.name} needs {' and '.join(missing)}")
    if left_over := [name for name in said if name not in (*known.needs, *known.may)]:
        raise ValueError(f"{known.name} of the {space.actions} actions takes no {' and '.join(left_over)}")
    arguments: dict[str, _Value] = {"action": known.name, **said}
    call = json.dumps({"name": space.tool.name, "arguments": arguments}, ensure_ascii=False)
    response = prompt_of(model.prompt_version).response(thought, call)
    return f"<think>\n{thought}\n</think>\n\n{response}" if model.model_type == "qwen3-think" else response


def _target(action: Action, space: ActionSpace, grid: int) -> dict[str, _Value]:
    if space.marked:
        elements = {"element_id": action.element, "end_element_id": action.end_element}
        return {name: element for name, element in elements.items() if element is not None}
    points = {"coordinate": action.point, "end_coordinate": action.end_point}
    return {name: [round(value / grid) * grid for value in point] for name, point in points.items() if point is not None}


def _other_arguments(action: Action) -> dict[str, _Value]:
    said: dict[str, _Value] = {}
    match action.kind:
        case ActionKind.TYPE:
            said = {"text": action.text} if action.enter else {"text": action.text, "enter": False}
        case ActionKind.ANSWER | ActionKind.SELECT:
            said = {"text": action.text}
        case ActionKind.NAVIGATE | ActionKind.NEW_TAB:
            said = {"url": action.text} if action.text else {}
        case ActionKind.SCROLL:
            said = {"direction": action.direction}
        case ActionKind.WAIT:
            said = {"time": action.seconds}
        case ActionKind.PRESS:
            said = {"keys": list(action.keys)}
        case ActionKind.SWITCH_TAB | ActionKind.CLOSE_TAB:
            said = {} if action.tab is None else {"tab": action.tab}
        case ActionKind.READ_PAGE:
            said = {"num_lines": action.num_lines}
        case ActionKind.CLICK | ActionKind.DOUBLE_CLICK | ActionKind.RIGHT_CLICK | ActionKind.DRAG | ActionKind.HOVER:
            pass  # the target is all
        case ActionKind.GO_BACK:
            pass
    return said
