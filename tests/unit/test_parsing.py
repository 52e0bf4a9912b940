"""Model output to actions, by value."""

import pytest

from agents.parsing import parse_response, render_action
from schemas.messages import Action, ActionKind

CLICK = ActionKind.CLICK


def _call(arguments: str) -> str:
    return f'Action: Do it.\n<tool_call>\n{{"name": "computer_use", "arguments": {arguments}}}\n</tool_call>'


@pytest.mark.parametrize(
    ("response", "action"),
    [
        (_call('{"action": "left_click", "coordinate": [10, 20]}'), Action(kind=CLICK, point=(10, 20))),
        (_call('{"action": "left_click", "coordinate": [10, 20, 30, 60]}'), Action(kind=CLICK, point=(20, 40))),
        (_call('{"action": "left_click", "coordinate": "(10.5, 20)"}'), Action(kind=CLICK, point=(10.5, 20))),
        (_call('{"action": "left_click", "coordinate": ["10", "1200"]}'), Action(kind=CLICK, point=(10, 1000))),
        (_call('"{\\"action\\": \\"left_click\\", \\"coordinate\\": [1, 2]}"'), Action(kind=CLICK, point=(1, 2))),
        (
            _call('{"action": "type", "coordinate": [1, 2], "text": "a \\"b\\"\n"}'),
            Action(kind=ActionKind.TYPE, point=(1, 2), text='a "b"\n'),
        ),
        (_call('{"action": "mouse_move", "coordinate": [1, 2]}'), Action(kind=ActionKind.HOVER, point=(1, 2))),
        (_call('{"action": "scroll", "direction": "UP"}'), Action(kind=ActionKind.SCROLL, direction="up")),
        (_call('{"action": "wait", "time": 5}'), Action(kind=ActionKind.WAIT, seconds=5)),
        (_call('{"action": "wait"}'), Action(kind=ActionKind.WAIT, seconds=2)),
        (_call('{"action": "wait", "time": 1e9}'), Action(kind=ActionKind.WAIT, seconds=60)),
        (_call('{"action": "go_back"}'), Action(kind=ActionKind.GO_BACK)),
        (_call('{"action": "navigate", "url": "a.org"}'), Action(kind=ActionKind.NAVIGATE, text="a.org")),
        (_call('{"action": "answer", "text": "42"}'), Action(kind=ActionKind.ANSWER, text="42")),
        (_call('{"action": "answer", "text": 42}'), Action(kind=ActionKind.ANSWER, text="42")),
        # without tags, flat, cut off, unquoted, wrongly bracketed
        ('{"action": "left_click", "coordinate": [3, 4]}', Action(kind=CLICK, point=(3, 4))),
        ('<tool_call>{"action": "left_click", "coordinate": [3, 4', Action(kind=CLICK, point=(3, 4))),
        ("<tool_call>{action: left_click, coordinate: (3, 4)}</tool_call>", Action(kind=CLICK, point=(3, 4))),
        (
            "<tool_call>{'action': 'answer', 'text': 'it is 42'}</tool_call>",
            Action(kind=ActionKind.ANSWER, text="it is 42"),
        ),
        ('<think>{"action": "go_back"}</think>' + _call('{"action": "wait"}'), Action(kind=ActionKind.WAIT)),
    ],
)
def test_understood(response: str, action: Action) -> None:
    parsed = parse_response(response)
    assert parsed.parsed
    assert parsed.action == action


@pytest.mark.parametrize(
    "response",
    [
        "",
        "I would click the button.",
        _call('{"action": "left_click"}'),
        _call('{"action": "left_click", "coordinate": [1, 2, 3]}'),
        _call('{"action": "left_click", "coordinate": [NaN, 2]}'),
        _call('{"action": "left_click", "coordinate": [true, false]}'),
        _call('{"action": "type", "coordinate": [1, 2]}'),
        _call('{"action": "navigate", "url": ""}'),
        _call('{"action": "launch", "coordinate": [1, 2]}'),
        _call("[" * 5000),
    ],
)
def test_not_understood_is_a_wait(response: str) -> None:
    parsed = parse_response(response)
    assert not parsed.parsed
    assert parsed.action == Action(kind=ActionKind.WAIT, seconds=2.0)


def test_the_thought_is_the_last_action_line() -> None:
    assert parse_response("Action: a\nAction:  Click it. \n<tool_call>\nAction: b").thought == "Click it."
    assert parse_response("nothing").thought == ""


def test_demonstration_word_for_word() -> None:
    action = Action(kind=CLICK, point=(514.9, 996.0))
    assert render_action(action, thought="Click the button.", grid=10) == (
        "Action: Click the button.\n<tool_call>\n"
        '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [510, 1000]}}\n'
        "</tool_call>"
    )


@pytest.mark.parametrize("version", ["vanilla", "complete"])
@pytest.mark.parametrize("kind", list(ActionKind))
def test_what_is_rendered_is_understood(kind: ActionKind, version: str) -> None:
    pointed = kind in (CLICK, ActionKind.TYPE, ActionKind.HOVER, ActionKind.SCROLL)
    texted = kind in (ActionKind.TYPE, ActionKind.NAVIGATE, ActionKind.ANSWER)
    action = Action(kind=kind, point=(7, 993) if pointed else None, text='grün "x"\\' if texted else "")
    parsed = parse_response(
        render_action(action, thought="Do it.", prompt_version="vanilla" if version == "vanilla" else "complete")
    )
    assert (parsed.action, parsed.parsed, parsed.thought) == (action, True, "Do it.")
