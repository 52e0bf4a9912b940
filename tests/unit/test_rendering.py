"""Demonstrations, by value."""

from collections.abc import Iterator
from typing import Literal

import pytest

from agents.action_space import ActionSpace
from agents.parsing import parse_response
from agents.rendering import render_action
from schemas.messages import Action, ActionKind
from schemas.model_config import ModelConfig
from tests.support.agents import action_spaces
from tests.support.agents.action_spaces import EXTENDED, EXTENDED_MARKS, MARKS, STANDARD, assert_within

_TEXT = 'grün "x"\\'


def test_word_for_word() -> None:
    action = Action(kind=ActionKind.CLICK, point=(514.9, 996.0))
    assert render_action(action, thought="Click the button.", grid=10) == (
        "Action: Click the button.\n<tool_call>\n"
        '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [510, 1000]}}\n'
        "</tool_call>"
    )


def test_word_for_word_with_marks() -> None:
    action = Action(kind=ActionKind.TYPE, element=7, text="Ada", enter=False)
    assert render_action(action, thought="Type it.", model=ModelConfig(prompt_version="complete"), space=EXTENDED_MARKS) == (
        'Memory: {}\nProgress: {"done": [], "left": []}\nIntention: Type it.\nAction: Type it.\n<tool_call>\n'
        '{"name": "web_interaction", "arguments": {"action": "type", "element_id": 7, "text": "Ada", "enter": false}}\n'
        "</tool_call>"
    )


def _aimed(kind: ActionKind, marked: bool) -> Action:
    end = kind is ActionKind.DRAG
    if marked:
        return Action(kind=kind, element=12, end_element=3 if end else None)
    return Action(kind=kind, point=(7, 993), end_point=(0, 1000) if end else None)


def _examples(kind: ActionKind, space: ActionSpace) -> Iterator[Action]:
    """Every form in which the space has an action."""
    target = _aimed(kind, space.marked)
    point, element = target.point, target.element
    match kind:
        case ActionKind.CLICK | ActionKind.DOUBLE_CLICK | ActionKind.RIGHT_CLICK | ActionKind.HOVER | ActionKind.DRAG:
            yield target
        case ActionKind.TYPE:
            yield Action(kind=kind, point=point, element=element, text=_TEXT)
            if space.tool.types_at_focus:
                yield Action(kind=kind, text=_TEXT)
                yield Action(kind=kind, point=point, element=element, text=_TEXT, enter=False)
        case ActionKind.SELECT:
            yield Action(kind=kind, point=point, element=element, text=_TEXT)
        case ActionKind.SCROLL:
            for direction in space.tool.directions:
                yield Action(kind=kind, point=point, element=element, direction=direction)
                yield Action(kind=kind, direction=direction)
        case ActionKind.PRESS:
            yield Action(kind=kind, keys=("Control+Shift+a", "Enter", "+"))
        case ActionKind.WAIT:
            yield Action(kind=kind, seconds=3.5)
        case ActionKind.NAVIGATE | ActionKind.ANSWER:
            yield Action(kind=kind, text=_TEXT)
        case ActionKind.NEW_TAB:
            yield Action(kind=kind)
            yield Action(kind=kind, text="https://a.org/?q=1")
        case ActionKind.SWITCH_TAB:
            yield Action(kind=kind, tab=2)
        case ActionKind.CLOSE_TAB:
            yield Action(kind=kind, tab=2)
            yield Action(kind=kind)
        case ActionKind.READ_PAGE:
            yield Action(kind=kind, num_lines=30)
        case ActionKind.GO_BACK:
            yield Action(kind=kind)


@pytest.mark.parametrize("version", ["vanilla", "complete"])
@pytest.mark.parametrize("kind_of_model", ["qwen3-instruct", "qwen3-think"])
@pytest.mark.parametrize(("space", "kind"), [(space, kind) for space in action_spaces.ALL for kind in space.tool.actions])
def test_what_is_rendered_is_understood(
    space: ActionSpace, kind: ActionKind, version: str, kind_of_model: Literal["qwen3-instruct", "qwen3-think"]
) -> None:
    model = ModelConfig(prompt_version=version, model_type=kind_of_model)
    examples = list(_examples(kind, space))
    assert examples
    for action in examples:
        parsed = parse_response(render_action(action, thought="Do it.", model=model, space=space), space)
        assert (parsed.action, parsed.parsed, parsed.thought) == (action, True, "Do it.")
        assert_within(parsed.action, space)


@pytest.mark.parametrize(
    ("action", "space", "reason"),
    [
        (Action(kind=ActionKind.READ_PAGE), STANDARD, "standard actions have no read_page"),
        (Action(kind=ActionKind.CLICK), STANDARD, "left_click needs coordinate"),
        (Action(kind=ActionKind.CLICK, point=(1, 2)), MARKS, "click needs element_id"),
        (Action(kind=ActionKind.DRAG, point=(1, 2)), EXTENDED, "left_click_drag needs end_coordinate"),
        (Action(kind=ActionKind.TYPE, point=(1, 2), text="a", enter=False), STANDARD, "takes no enter"),
        (Action(kind=ActionKind.SCROLL, direction="left"), STANDARD, "do not scroll left"),
        (Action(kind=ActionKind.NAVIGATE), STANDARD, "navigate needs url"),
    ],
)
def test_what_a_space_cannot_say_is_refused(action: Action, space: ActionSpace, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        render_action(action, thought="Do it.", space=space)
