"""OpenWebRL's tools: what is read, in JSON and in XML, and what demonstrations say."""

import json

import msgspec
import pytest

from agents.action_space import ActionSpace
from agents.page_text import current_page
from agents.parsing import parse_response
from agents.prompts import system_prompt
from agents.rendering import render_action
from schemas.context_config import ContextConfig
from schemas.errors import ConfigurationError
from schemas.messages import Action, ActionKind, BrowserTab
from schemas.model_config import ModelConfig
from tests import builders
from tests.support.agents.action_spaces import OPENWEBRL, assert_within

_FUNCTIONS = {
    "click", "write", "press_keys", "scroll", "wait", "done", "goto_url", "go_back", "drag", "hover", "new_tab", "switch_tab",
    "close_tab",
}  # fmt: skip
_CASES = [
    ("click", {"point_2d": [10, 20]}, Action(kind=ActionKind.CLICK, point=(10, 20))),
    ("click", {"point_2d": [10, 20], "clicks": 2}, Action(kind=ActionKind.DOUBLE_CLICK, point=(10, 20))),
    ("click", {"point_2d": [10, 20], "button": "right"}, Action(kind=ActionKind.RIGHT_CLICK, point=(10, 20))),
    ("write", {"message": "[1, 2] grün"}, Action(kind=ActionKind.TYPE, text="[1, 2] grün", enter=False)),
    ("press_keys", {"keys": ["Enter"]}, Action(kind=ActionKind.PRESS, keys=("Enter",))),
    (
        "press_keys",
        {"keys": ["Tab", "Enter"], "presses": 2},
        Action(kind=ActionKind.PRESS, keys=("Tab", "Tab", "Enter", "Enter")),
    ),
    ("press_keys", {"keys": ["a", "b"], "is_hotkey": True}, Action(kind=ActionKind.PRESS, keys=("a+b",))),
    ("scroll", {"direction": "left"}, Action(kind=ActionKind.SCROLL, direction="left", amount=0.5)),
    (
        "scroll",
        {"direction": "up", "amount": 0.25, "point_2d": [1, 2]},
        Action(kind=ActionKind.SCROLL, direction="up", amount=0.25, point=(1, 2)),
    ),
    ("wait", {"seconds": 4}, Action(kind=ActionKind.WAIT, seconds=4)),
    ("wait", {}, Action(kind=ActionKind.WAIT, seconds=3)),
    ("done", {"response": "12.90"}, Action(kind=ActionKind.ANSWER, text="12.90")),
    ("done", {"response": ""}, Action(kind=ActionKind.ANSWER)),
    ("goto_url", {"url": "https://a.org"}, Action(kind=ActionKind.NAVIGATE, text="https://a.org")),
    ("go_back", {}, Action(kind=ActionKind.GO_BACK)),
    (
        "drag",
        {"start_point_2d": [1, 2], "end_point_2d": [3, 4]},
        Action(kind=ActionKind.DRAG, point=(1, 2), end_point=(3, 4)),
    ),
    ("hover", {"point_2d": [1, 2]}, Action(kind=ActionKind.HOVER, point=(1, 2))),
    ("new_tab", {}, Action(kind=ActionKind.NEW_TAB)),
    ("switch_tab", {"tab_index": 0}, Action(kind=ActionKind.SWITCH_TAB, tab=1)),
    ("close_tab", {}, Action(kind=ActionKind.CLOSE_TAB)),
]


def _json(name: str, arguments: dict[str, object]) -> str:
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<think>\nwhy\n</think>\n\n<tool_call>\n{call}\n</tool_call>"


def _xml(name: str, arguments: dict[str, object]) -> str:
    said = "".join(
        f"<parameter={key}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>\n"
        for key, value in arguments.items()
    )
    return f"<think>\nwhy\n</think>\n\n<tool_call>\n<function={name}>\n{said}</function>\n</tool_call>"


@pytest.mark.parametrize("spelled", [_json, _xml])
@pytest.mark.parametrize(("name", "arguments", "action"), _CASES)
def test_a_call_is_read(spelled: object, name: str, arguments: dict[str, object], action: Action) -> None:
    assert callable(spelled)
    read = parse_response(spelled(name, arguments), OPENWEBRL)
    assert (read.action, read.parsed) == (action, True)
    assert_within(read.action, OPENWEBRL)


@pytest.mark.parametrize("version", ["openwebrl", "openwebrl_xml"])
@pytest.mark.parametrize("action", [action for *_, action in _CASES])
def test_what_is_demonstrated_is_understood(version: str, action: Action) -> None:
    said = render_action(action, thought="Because.", model=ModelConfig(prompt_version=version), space=OPENWEBRL)
    assert said.startswith("<think>\nBecause.\n</think>\n\n<tool_call>")
    read = parse_response(said, OPENWEBRL, max_calls=9)
    assert (read.action, read.further, read.num_left_out) == (action, (), 0)


@pytest.mark.parametrize("version", ["openwebrl", "openwebrl_xml"])
def test_typing_into_a_field_is_three_calls(version: str) -> None:
    typed = Action(kind=ActionKind.TYPE, point=(5, 6), text="tea")
    said = render_action(typed, thought="Because.", model=ModelConfig(prompt_version=version), space=OPENWEBRL)
    read = parse_response(said, OPENWEBRL, max_calls=9)
    assert (read.action, *read.further) == (
        Action(kind=ActionKind.CLICK, point=(5, 6)),
        Action(kind=ActionKind.TYPE, text="tea", enter=False),
        Action(kind=ActionKind.PRESS, keys=("Enter",)),
    )


def test_a_new_tab_is_empty() -> None:
    said = render_action(Action(kind=ActionKind.NEW_TAB, text="https://a.org"), thought="Because.", space=OPENWEBRL)
    read = parse_response(said, OPENWEBRL, max_calls=9)
    assert (read.action, *read.further) == (
        Action(kind=ActionKind.NEW_TAB),
        Action(kind=ActionKind.NAVIGATE, text="https://a.org"),
    )
    assert OPENWEBRL.tool.actions[ActionKind.NEW_TAB].may == ()


def test_no_action_is_taken_apart_into_more_calls_than_the_tool_says() -> None:
    actions = [action for *_, action in _CASES]
    actions += [Action(kind=ActionKind.TYPE, point=(5, 6), text="tea"), Action(kind=ActionKind.NEW_TAB, text="a.org")]
    assert max(len(OPENWEBRL.tool.taken_apart(action)) for action in actions) == OPENWEBRL.tool.most_calls


def test_a_model_that_thinks_says_its_thought_once() -> None:
    model = ModelConfig(prompt_version="openwebrl", model_type="qwen3-think")
    said = render_action(Action(kind=ActionKind.GO_BACK), thought="Because.", model=model, space=OPENWEBRL)
    assert said.count("<think>") == 1


def test_xml_inside_json_is_text() -> None:
    read = parse_response(_json("write", {"message": "<function=done>"}), OPENWEBRL)
    assert read.action == Action(kind=ActionKind.TYPE, text="<function=done>", enter=False)


@pytest.mark.parametrize(
    ("call", "action"),
    [
        ('{"name": "click", "arguments": {"point_2d": [500, 40]}', Action(kind=ActionKind.CLICK, point=(500, 40))),
        (
            '{"name": "drag", "arguments": {"start_point_2d": [1, 2], "end_point_2d": [3, 4]}',
            Action(kind=ActionKind.DRAG, point=(1, 2), end_point=(3, 4)),
        ),
        (
            '{"name": "write", "arguments": {"message": "say "hi""}}',
            Action(kind=ActionKind.TYPE, text='say "hi"', enter=False),
        ),
        ('{"name": "done", "arguments": {"response": "12.90"', Action(kind=ActionKind.ANSWER, text="12.90")),
        ('{"name": "wait", "arguments": {"seconds": 4', Action(kind=ActionKind.WAIT, seconds=4)),
        ('{"name": "switch_tab", "arguments": {"tab_index": 1', Action(kind=ActionKind.SWITCH_TAB, tab=2)),
        (
            '{"name": "press_keys", "arguments": {"keys": ["Control", "a"], "is_hotkey": true',
            Action(kind=ActionKind.PRESS, keys=("Control+a",)),
        ),
        ("<function=write>\n<parameter=message>\nhello\n</function>", Action(kind=ActionKind.TYPE, text="hello", enter=False)),
        (
            "<function=press_keys>\n<parameter=keys>\n['Control', 'a']\n</parameter>\n"
            "<parameter=is_hotkey>\nTrue\n</parameter>\n</function>",
            Action(kind=ActionKind.PRESS, keys=("Control+a",)),
        ),
    ],
)
def test_a_broken_call_is_read_by_the_functions_own_words(call: str, action: Action) -> None:
    read = parse_response(f"<tool_call>\n{call}\n</tool_call>", OPENWEBRL)
    assert (read.action, read.parsed) == (action, True)


def test_done_without_a_response_ends_the_task_where_nothing_is_missing() -> None:
    ended = Action(kind=ActionKind.ANSWER)
    for call in (_json("done", {}), _xml("done", {})):
        assert parse_response(call, OPENWEBRL).action == ended
    for call in ('{"name": "done", "arguments": {"respo', "<function=done>\n<parameter=respo"):
        assert not parse_response(f"<tool_call>\n{call}", OPENWEBRL).parsed


def test_an_xml_call_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    read = parse_response("<tool_call>\n<function=done>\n<parameter=response>\n12.9", OPENWEBRL)
    assert read.action == Action(kind=ActionKind.ANSWER, text="12.9")


@pytest.mark.parametrize("version", ["openwebrl", "openwebrl_xml"])
def test_the_prompt_has_every_tool(version: str) -> None:
    listed = system_prompt(version, OPENWEBRL).partition("<tools>\n")[2].partition("\n</tools>")[0]
    functions = [json.loads(line)["function"] for line in listed.splitlines()]
    assert {function["name"] for function in functions} == _FUNCTIONS
    for function in functions:
        parameters = function["parameters"]
        actions = [action for action in OPENWEBRL.tool.actions.values() if action.name == function["name"]]
        assert actions
        for action in actions:
            assert set(parameters["properties"]) == {*action.needs, *action.may}
            assert set(parameters["required"]) == set(action.needs)
    assert ("<function=" in system_prompt(version, OPENWEBRL)) == (version == "openwebrl_xml")


def test_tabs_are_counted_as_the_tool_counts_them() -> None:
    tabs = (BrowserTab(title="One", url="http://a/"), BrowserTab(title="Two", url="http://b/", active=True))
    seen = builders.observation(builders.task(), 0)
    seen = msgspec.structs.replace(seen, tabs=tabs)
    assert current_page(seen, ContextConfig(actions="openwebrl"))[:2] == ["Tabs:", "0. One (http://a/)"]
    assert current_page(seen, ContextConfig())[:2] == ["Tabs:", "1. One (http://a/)"]


def test_marks_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="write coordinates for"):
        _ = ActionSpace(mode="set_of_marks", actions="openwebrl").tool
