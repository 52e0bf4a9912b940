"""Model output to actions, by value."""

import pytest

from agents.action_space import ActionSpace
from agents.parsing import parse_response
from schemas.messages import Action, ActionKind
from tests.support.agents import action_spaces
from tests.support.agents.action_spaces import EXTENDED, EXTENDED_MARKS, MARKS, STANDARD, assert_within

CLICK = ActionKind.CLICK
DRAG = ActionKind.DRAG
PRESS = ActionKind.PRESS
SCROLL = ActionKind.SCROLL
TYPE = ActionKind.TYPE
_FALLBACK = Action(kind=ActionKind.WAIT, seconds=2.0)


def _call(arguments: str, tool: str = "computer_use") -> str:
    return f'Action: Do it.\n<tool_call>\n{{"name": "{tool}", "arguments": {arguments}}}\n</tool_call>'


@pytest.mark.parametrize(
    ("response", "action"),
    [
        (_call('{"action": "left_click", "coordinate": [10, 20]}'), Action(kind=CLICK, point=(10, 20))),
        (_call('{"action": "left_click", "coordinate": [10, 20, 30, 60]}'), Action(kind=CLICK, point=(20, 40))),
        (_call('{"action": "left_click", "coordinate": "(10.5, 20)"}'), Action(kind=CLICK, point=(10.5, 20))),
        (_call('{"action": "left_click", "coordinate": ["10", "1200"]}'), Action(kind=CLICK, point=(10, 1000))),
        (_call('"{\\"action\\": \\"left_click\\", \\"coordinate\\": [1, 2]}"'), Action(kind=CLICK, point=(1, 2))),
        (_call('{"action": "Left-Click", "point": [1, 2]}'), Action(kind=CLICK, point=(1, 2))),
        (_call('{"action": "click", "x": 1, "y": "2"}'), Action(kind=CLICK, point=(1, 2))),
        (_call('{"coordinate": [1, 2]}', tool="left_click"), Action(kind=CLICK, point=(1, 2))),
        (
            _call('{"action": "type", "coordinate": [1, 2], "text": "a \\"b\\"\n"}'),
            Action(kind=TYPE, point=(1, 2), text='a "b"\n'),
        ),
        (_call('{"action": "input_text", "coordinate": [1, 2], "content": 7}'), Action(kind=TYPE, point=(1, 2), text="7")),
        (_call('{"action": "type", "coordinate": [1, 2], "text": ""}'), Action(kind=TYPE, point=(1, 2))),
        (_call('{"action": "mouse_move", "coordinate": [1, 2]}'), Action(kind=ActionKind.HOVER, point=(1, 2))),
        (_call('{"action": "scroll", "direction": "UP"}'), Action(kind=SCROLL, direction="up")),
        (_call('{"action": "scroll"}'), Action(kind=SCROLL)),
        (_call('{"action": "scroll", "pixels": -300, "coordinate": [1, 2]}'), Action(kind=SCROLL, point=(1, 2))),
        (_call('{"action": "scroll", "pixels": 300}'), Action(kind=SCROLL, direction="up")),
        (_call('{"action": "scroll", "scroll_direction": "up", "scroll_amount": 3}'), Action(kind=SCROLL, direction="up")),
        (_call('{"action": "scroll_up"}'), Action(kind=SCROLL, direction="up")),
        (_call('{"action": "hover_and_scroll", "coordinate": [1, 2]}'), Action(kind=SCROLL, point=(1, 2))),
        (_call('{"action": "wait", "time": 5}'), Action(kind=ActionKind.WAIT, seconds=5)),
        (_call('{"action": "sleep", "seconds": "5"}'), Action(kind=ActionKind.WAIT, seconds=5)),
        (_call('{"action": "wait"}'), Action(kind=ActionKind.WAIT, seconds=2)),
        (_call('{"action": "wait", "time": 1e9}'), Action(kind=ActionKind.WAIT, seconds=60)),
        (_call('{"action": "go_back"}'), Action(kind=ActionKind.GO_BACK)),
        (_call('{"action": "navigate", "url": "a.org"}'), Action(kind=ActionKind.NAVIGATE, text="a.org")),
        (_call('{"action": "goto", "url": "a.org"}'), Action(kind=ActionKind.NAVIGATE, text="a.org")),
        (_call('{"action": "answer", "text": "42"}'), Action(kind=ActionKind.ANSWER, text="42")),
        (_call('{"action": "answer", "text": 42}'), Action(kind=ActionKind.ANSWER, text="42")),
        (_call('{"action": "finished", "content": "42"}'), Action(kind=ActionKind.ANSWER, text="42")),
        (
            _call('{"action": "terminate", "answer": "42", "status": "success"}'),
            Action(kind=ActionKind.ANSWER, text="42"),
        ),
        (_call('{"action": "terminate", "status": "failure"}'), Action(kind=ActionKind.ANSWER, text="failure")),
        (_call('{"action": "left_click", "coordinate": [1, 2], "clicks": 1}'), Action(kind=CLICK, point=(1, 2))),
        # without tags, flat, cut off, unquoted, wrongly bracketed
        ('{"action": "left_click", "coordinate": [3, 4]}', Action(kind=CLICK, point=(3, 4))),
        ('<tool_call>{"action": "left_click", "coordinate": [3, 4', Action(kind=CLICK, point=(3, 4))),
        ("<tool_call>{action: left_click, coordinate: (3, 4)}</tool_call>", Action(kind=CLICK, point=(3, 4))),
        (
            "<tool_call>{'action': 'answer', 'text': 'it is 42'}</tool_call>",
            Action(kind=ActionKind.ANSWER, text="it is 42"),
        ),
        ('<think>{"action": "go_back"}</think>' + _call('{"action": "wait"}'), Action(kind=ActionKind.WAIT)),
        # the first call that says something
        (_call('{"action": "launch"}') + _call('{"action": "go_back"}'), Action(kind=ActionKind.GO_BACK)),
    ],
)
@pytest.mark.parametrize("space", [STANDARD, EXTENDED])
def test_standard_actions_with_points(space: ActionSpace, response: str, action: Action) -> None:
    parsed = parse_response(response, space)
    assert parsed.parsed
    assert parsed.action == action
    assert_within(parsed.action, space)


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        ('{"action": "click", "element_id": 12}', Action(kind=CLICK, element=12)),
        ('{"action": "click", "element_id": "12"}', Action(kind=CLICK, element=12)),
        ('{"action": "click", "element_id": "[12]"}', Action(kind=CLICK, element=12)),
        ('{"action": "click", "element_id": [12]}', Action(kind=CLICK, element=12)),
        ('{"action": "click", "element_id": 12.0}', Action(kind=CLICK, element=12)),
        ('{"action": "left_click", "element": "#12"}', Action(kind=CLICK, element=12)),
        ('{"action": "click", "element_id": 12, "coordinate": [1, 2]}', Action(kind=CLICK, element=12)),
        ("{action: click, element_id: [12]}", Action(kind=CLICK, element=12)),
        ('{"action": "click", "element_id": 12', Action(kind=CLICK, element=12)),
        ('{"action": "type", "element_id": 3, "text": "Ada"}', Action(kind=TYPE, element=3, text="Ada")),
        ('{"action": "hover", "element_id": 3}', Action(kind=ActionKind.HOVER, element=3)),
        ('{"action": "scroll", "direction": "up", "element_id": 3}', Action(kind=SCROLL, element=3, direction="up")),
        ('{"action": "scroll_id", "id": 3, "direction": "down"}', Action(kind=SCROLL, element=3)),
        ('{"action": "hover_and_scroll", "element_id": 3}', Action(kind=SCROLL, element=3)),
        ('{"action": "scroll", "direction": "down"}', Action(kind=SCROLL)),
        ('{"action": "scroll", "element_id": "window"}', Action(kind=SCROLL)),
        ('{"action": "scroll", "coordinate": [1, 2]}', Action(kind=SCROLL)),
        ('{"action": "answer", "text": "42"}', Action(kind=ActionKind.ANSWER, text="42")),
        ('{"action": "wait", "time": 1}', Action(kind=ActionKind.WAIT, seconds=1)),
    ],
)
@pytest.mark.parametrize("space", [MARKS, EXTENDED_MARKS])
def test_standard_actions_with_marks(space: ActionSpace, arguments: str, action: Action) -> None:
    parsed = parse_response(_call(arguments, tool="web_interaction"), space)
    assert parsed.parsed
    assert parsed.action == action
    assert_within(parsed.action, space)


_ANY_MODE = [
    ('{"action": "key", "keys": ["ctrl", "a"]}', Action(kind=PRESS, keys=("ctrl+a",))),
    ('{"action": "key", "keys": "ctrl+a"}', Action(kind=PRESS, keys=("ctrl+a",))),
    ('{"action": "key", "text": "Return"}', Action(kind=PRESS, keys=("Return",))),
    ('{"action": "press", "key": "esc"}', Action(kind=PRESS, keys=("esc",))),
    ('{"action": "keypress", "keys": ["Tab", "Enter"]}', Action(kind=PRESS, keys=("Tab", "Enter"))),
    ('{"action": "hotkey", "key": "ctrl c"}', Action(kind=PRESS, keys=("ctrl+c",))),
    ('{"action": "tab_and_enter"}', Action(kind=PRESS, keys=("Tab", "Enter"))),
    ("{action: press, keys: [ctrl, a]}", Action(kind=PRESS, keys=("ctrl+a",))),
    ('{"action": "key", "keys": ["ctrl", "a"}', Action(kind=PRESS, keys=("ctrl+a",))),
    ('{"action": "scroll", "direction": "left"}', Action(kind=SCROLL, direction="left")),
    ('{"action": "hscroll", "pixels": 100}', Action(kind=SCROLL, direction="right")),
    ('{"action": "hscroll", "pixels": -100}', Action(kind=SCROLL, direction="left")),
    ('{"action": "scroll_right"}', Action(kind=SCROLL, direction="right")),
    ('{"action": "type", "text": "Ada"}', Action(kind=TYPE, text="Ada")),
    ('{"action": "type", "text": "Ada", "enter": false}', Action(kind=TYPE, text="Ada", enter=False)),
    ('{"action": "type", "text": "Ada", "press_enter": "False"}', Action(kind=TYPE, text="Ada", enter=False)),
    ('{action: type, text: "Ada", enter: false}', Action(kind=TYPE, text="Ada", enter=False)),
    ('{"action": "new_tab"}', Action(kind=ActionKind.NEW_TAB)),
    ('{"action": "open_tab", "url": "a.org"}', Action(kind=ActionKind.NEW_TAB, text="a.org")),
    ('{"action": "switch_tab", "tab": 2}', Action(kind=ActionKind.SWITCH_TAB, tab=2)),
    ('{"action": "switch_tab", "tab_id": "2"}', Action(kind=ActionKind.SWITCH_TAB, tab=2)),
    ('{"action": "close_tab"}', Action(kind=ActionKind.CLOSE_TAB)),
    ('{"action": "close_tab", "tab": 2}', Action(kind=ActionKind.CLOSE_TAB, tab=2)),
    ('{"action": "read_page"}', Action(kind=ActionKind.READ_PAGE)),
    ('{"action": "get_page_text", "lines": "20"}', Action(kind=ActionKind.READ_PAGE, num_lines=20)),
    ('{"action": "read_page", "num_lines": -3}', Action(kind=ActionKind.READ_PAGE)),
]


@pytest.mark.parametrize(("arguments", "action"), _ANY_MODE)
@pytest.mark.parametrize("space", [EXTENDED, EXTENDED_MARKS])
def test_extended_actions_without_a_target(space: ActionSpace, arguments: str, action: Action) -> None:
    parsed = parse_response(_call(arguments), space)
    assert parsed.parsed
    assert parsed.action == action
    assert_within(parsed.action, space)


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        ('{"action": "double_click", "coordinate": [1, 2]}', Action(kind=ActionKind.DOUBLE_CLICK, point=(1, 2))),
        ('{"action": "triple_click", "coordinate": [1, 2]}', Action(kind=ActionKind.DOUBLE_CLICK, point=(1, 2))),
        ('{"action": "right_click", "coordinate": [1, 2]}', Action(kind=ActionKind.RIGHT_CLICK, point=(1, 2))),
        ('{"action": "click", "button": "right", "x": 1, "y": 2}', Action(kind=ActionKind.RIGHT_CLICK, point=(1, 2))),
        (
            '{"action": "left_click_drag", "coordinate": [1, 2], "end_coordinate": [3, 4]}',
            Action(kind=DRAG, point=(1, 2), end_point=(3, 4)),
        ),
        (
            '{"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]}',
            Action(kind=DRAG, point=(1, 2), end_point=(3, 4)),
        ),
        (
            '{"action": "drag", "start_coordinate": [1, 2], "end_coordinate": [3, 4]}',
            Action(kind=DRAG, point=(1, 2), end_point=(3, 4)),
        ),
        (
            '{"action": "drag", "coordinate": [1, 2], "coordinate2": [3, 4]}',
            Action(kind=DRAG, point=(1, 2), end_point=(3, 4)),
        ),
        (
            "{action: drag, start_coordinate: (1, 2), end_coordinate: (3, 4)}",
            Action(kind=DRAG, point=(1, 2), end_point=(3, 4)),
        ),
        (
            '{"action": "select_option", "coordinate": [1, 2], "option": "Blue"}',
            Action(kind=ActionKind.SELECT, point=(1, 2), text="Blue"),
        ),
        (
            '{"action": "type", "coordinate": [1, 2], "text": "a", "enter": false}',
            Action(kind=TYPE, point=(1, 2), text="a", enter=False),
        ),
    ],
)
def test_extended_actions_with_points(arguments: str, action: Action) -> None:
    parsed = parse_response(_call(arguments), EXTENDED)
    assert parsed.action == action
    assert_within(parsed.action, EXTENDED)
    for other in (STANDARD, MARKS, EXTENDED_MARKS):
        assert not parse_response(_call(arguments), other).parsed


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        ('{"action": "double_click", "element_id": 4}', Action(kind=ActionKind.DOUBLE_CLICK, element=4)),
        ('{"action": "right_click", "element_id": "[4]"}', Action(kind=ActionKind.RIGHT_CLICK, element=4)),
        ('{"action": "drag", "element_id": 4, "end_element_id": 5}', Action(kind=DRAG, element=4, end_element=5)),
        (
            '{"action": "drag_and_drop", "source_element_id": 4, "target_element_id": 5}',
            Action(kind=DRAG, element=4, end_element=5),
        ),
        ('{"action": "drag", "from": 4, "to": 5}', Action(kind=DRAG, element=4, end_element=5)),
        ("{action: drag, element_id: 4, end_element_id: 5}", Action(kind=DRAG, element=4, end_element=5)),
        ('{"action": "select", "element_id": 4, "text": "Blue"}', Action(kind=ActionKind.SELECT, element=4, text="Blue")),
        (
            '{"action": "type", "element_id": 4, "text": "a", "submit": false}',
            Action(kind=TYPE, element=4, text="a", enter=False),
        ),
    ],
)
def test_extended_actions_with_marks(arguments: str, action: Action) -> None:
    parsed = parse_response(_call(arguments), EXTENDED_MARKS)
    assert parsed.action == action
    assert_within(parsed.action, EXTENDED_MARKS)
    for other in (STANDARD, EXTENDED, MARKS):
        assert not parse_response(_call(arguments), other).parsed


@pytest.mark.parametrize(
    "response",
    [
        "",
        "I would click the button.",
        _call('{"action": "left_click"}'),
        _call('{"action": "left_click", "coordinate": [1, 2, 3]}'),
        _call('{"action": "left_click", "coordinate": [NaN, 2]}'),
        _call('{"action": "left_click", "coordinate": [true, false]}'),
        _call('{"action": "click", "element_id": 0}'),
        _call('{"action": "click", "element_id": 1.5}'),
        _call('{"action": "click", "element_id": true}'),
        _call('{"action": "click", "element_id": "the button"}'),
        _call('{"action": "type", "coordinate": [1, 2], "element_id": 1}'),
        _call('{"action": "type", "coordinate": [1], "text": "a"}'),
        _call('{"action": "type", "element_id": "x", "text": "a"}'),
        _call('{"action": "navigate", "url": ""}'),
        _call('{"action": "answer", "text": ""}'),
        _call('{"action": "launch", "coordinate": [1, 2]}'),
        _call('{"action": "middle_click", "coordinate": [1, 2], "element_id": 1}'),
        _call('{"action": "left_click_drag", "coordinate": [1, 2], "element_id": 1}'),
        _call('{"action": "drag", "end_coordinate": [1, 2], "end_element_id": 1}'),
        _call('{"action": "key"}'),
        _call('{"action": "key", "keys": []}'),
        _call('{"action": "key", "keys": [null]}'),
        _call('{"action": "select", "coordinate": [1, 2], "element_id": 1}'),
        _call('{"action": "switch_tab"}'),
        _call('{"action": "switch_tab", "tab": 0}'),
        _call('{"action": "close_tab", "tab": "last"}'),
        _call('{"action": 7}'),
        _call("[" * 5000),
    ],
)
@pytest.mark.parametrize("space", action_spaces.ALL)
def test_not_understood_is_a_wait(space: ActionSpace, response: str) -> None:
    parsed = parse_response(response, space)
    assert not parsed.parsed
    assert parsed.action == _FALLBACK


@pytest.mark.parametrize("space", [STANDARD, MARKS])
@pytest.mark.parametrize("arguments", [arguments for arguments, _ in _ANY_MODE])
def test_the_standard_set_offers_no_more(arguments: str, space: ActionSpace) -> None:
    parsed = parse_response(_call(arguments), space)
    assert (parsed.parsed, parsed.action) == (False, _FALLBACK)


@pytest.mark.parametrize("kind", ["click", "hover", "type"])
@pytest.mark.parametrize("space", action_spaces.ALL)
def test_a_target_of_the_other_mode_is_none(space: ActionSpace, kind: str) -> None:
    pointed = parse_response(_call(f'{{"action": "{kind}", "coordinate": [1, 2], "text": "a"}}'), space)
    marked = parse_response(_call(f'{{"action": "{kind}", "element_id": 1, "text": "a"}}'), space)
    assert (pointed.parsed, marked.parsed) == (not space.marked, space.marked)


def test_the_thought_is_the_last_action_line() -> None:
    assert parse_response("Action: a\nAction:  Click it. \n<tool_call>\nAction: b").thought == "Click it."
    assert parse_response("nothing").thought == ""


def _several(*calls: str) -> str:
    return "\n".join(f"<tool_call>{call}</tool_call>" for call in calls)


_CLICK, _TYPE = '{"action": "left_click", "coordinate": [1, 2]}', '{"action": "type", "coordinate": [1, 2], "text": "a"}'
_DONE, _NONSENSE = '{"action": "answer", "text": "42"}', '{"action": "dance"}'
_BROKEN, _EMPTY = '{"action": "type", "coordinate": [1, 2], "text": "say "hi""}', "what now?"


@pytest.mark.parametrize(
    ("calls", "max_calls", "kinds", "num_left_out"),
    [
        ((_CLICK, _TYPE, _DONE), 1, (CLICK,), 0),
        ((_CLICK, _TYPE, _DONE), 2, (CLICK, TYPE), 1),
        ((_CLICK, _TYPE, _DONE), 9, (CLICK, TYPE, ActionKind.ANSWER), 0),
        ((_NONSENSE, _CLICK, _NONSENSE, _TYPE), 9, (CLICK, TYPE), 2),
        ((_CLICK, _DONE, _TYPE), 9, (CLICK, ActionKind.ANSWER), 1),
        ((_CLICK,), 9, (CLICK,), 0),
        ((_CLICK, _BROKEN, _DONE), 9, (CLICK, TYPE, ActionKind.ANSWER), 0),
        ((_CLICK, _EMPTY, _DONE), 9, (CLICK, ActionKind.ANSWER), 1),
        ((_BROKEN, _CLICK), 1, (TYPE,), 0),
        ((_EMPTY, _CLICK), 1, (CLICK,), 0),
    ],
)
def test_several_calls_are_read_up_to_the_answer(
    calls: tuple[str, ...], max_calls: int, kinds: tuple[ActionKind, ...], num_left_out: int
) -> None:
    read = parse_response(_several(*calls), max_calls=max_calls)
    assert tuple(action.kind for action in (read.action, *read.further)) == kinds
    assert (read.parsed, read.num_left_out) == (True, num_left_out)


def test_two_clicks_are_one_where_there_is_no_double_click() -> None:
    call = _call('{"action": "left_click", "coordinate": [1, 2], "clicks": 2}')
    assert parse_response(call, STANDARD).action == Action(kind=CLICK, point=(1, 2))
    assert parse_response(call, EXTENDED).action == Action(kind=ActionKind.DOUBLE_CLICK, point=(1, 2))


def test_with_no_call_that_can_be_read_nothing_is_done() -> None:
    read = parse_response(_several(_NONSENSE, _NONSENSE), max_calls=9)
    assert (read.parsed, read.action, read.further, read.num_left_out) == (False, _FALLBACK, (), 0)
