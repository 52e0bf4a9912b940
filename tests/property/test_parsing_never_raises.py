"""Whatever a model says, parsing gives an action that can be stored and carried out."""

import json

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from agents.earlier_answers import without_thinking
from agents.parsing import parse_response
from agents.rendering import render_action
from bus.codec import encode
from schemas.messages import Action, ActionKind
from schemas.model_config import ModelConfig
from tests import builders
from tests.support.agents import action_spaces
from tests.support.agents.action_spaces import EXTENDED, EXTENDED_MARKS, OPENWEBRL, assert_within

_PIECES = st.sampled_from(
    [
        "<tool_call>", "</tool_call>", "<think>", "</think>", "{", "}", "[", "]", '"', "'", ":", ",", "\\", "\\ud800", "\n",
        '"action"', "action", "left_click", "type", "scroll", "wait", "navigate", "answer", '"coordinate": [1, 2]',
        "coordinate", "1e999", "NaN", '"arguments"', '"text": "x"', '"time"', "true", "null", "Action:", "\x00",
        "drag", "key", "press", "select", "switch_tab", "read_page", "hscroll", "click", '"element_id": [1]', '"element_id"',
        "[12]", '"keys": ["ctrl", "a"]', "keys", '"end_coordinate": [3, 4]', "end_element_id", "pixels", '"tab"', "-7", "3",
        '"enter": false', "<function=click>", "<function=write>", "<parameter=point_2d>", "<parameter=message>",
        "</parameter>", "</function>", '"clicks": 2', '"presses": 9', '"is_hotkey": true', '"amount": 7', '"tab_index": 0',
        '"message": "x"',
    ]
)  # fmt: skip


_GOOD = render_action(Action(kind=ActionKind.CLICK, point=(120.0, 40.0)), thought="Click the button.")
_GOOD_DRAG = render_action(Action(kind=ActionKind.DRAG, element=12, end_element=3), thought="Drag.", space=EXTENDED_MARKS)
_GOOD_KEYS = render_action(Action(kind=ActionKind.PRESS, keys=("Control+a", "+")), thought="Press.", space=EXTENDED)
_GOOD_CALLS = render_action(
    Action(kind=ActionKind.TYPE, point=(1.0, 2.0), text="tea"),
    thought="Type.",
    model=ModelConfig(prompt_version="openwebrl_xml"),
    space=OPENWEBRL,
)


@st.composite
def _damaged(draw: st.DrawFn) -> str:
    """A good response with a few characters put in, as a half-trained model writes it."""
    response = draw(st.sampled_from([_GOOD, _GOOD_DRAG, _GOOD_KEYS, _GOOD_CALLS]))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(response)))
        response = response[:at] + draw(st.characters()) + response[at:]
    return response


@example(_GOOD.replace("[120, 40]", "[120, \x1e40"))
@example(_GOOD_KEYS.replace('"+"', '"\\ud800"'))
@example(_GOOD.replace("Action: ", "Action: \ud800"))
@given(
    st.one_of(st.text(), _damaged(), st.lists(_PIECES, max_size=25).map("".join), st.lists(_PIECES, max_size=25).map(" ".join))
)
def test_any_text(response: str) -> None:
    for space in (*action_spaces.ALL, OPENWEBRL):
        parsed = parse_response(response, space, max_calls=3)
        assert parsed.parsed or parsed.action == Action(kind=ActionKind.WAIT, seconds=2.0)
        assert len(parsed.further) < 3
        for action in (parsed.action, *parsed.further):
            assert_within(action, space)
        step = msgspec.structs.replace(
            builders.step_request(builders.task()), action=parsed.action, further=parsed.further, thought=parsed.thought
        )
        assert not step.contradiction()
        encode(step)
        assert parse_response(response, space).action == parsed.action
    without_thinking(response)


_NAMES = st.sampled_from(
    [name for space in action_spaces.ALL for action in space.tool.actions.values() for name in (action.name, *action.needs)]
    + ["hscroll", "terminate", "hover_and_scroll", "start_coordinate", "coordinate2", "pixels", "enter", "tab", "num_lines"]
)
_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), _NAMES, st.lists(st.integers(), max_size=5)
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=5), _NAMES)
def test_any_arguments(arguments: dict[str, object], name: str) -> None:
    call = json.dumps({"name": "computer_use", "arguments": {**arguments, "action": name}})
    for space in action_spaces.ALL:
        parsed = parse_response(f"<tool_call>{call}</tool_call>", space)
        assert_within(parsed.action, space)
        encode(msgspec.structs.replace(builders.step_request(builders.task()), action=parsed.action))
