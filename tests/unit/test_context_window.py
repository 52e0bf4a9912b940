"""The context window, by value."""

import msgspec
import pytest

from agents.context import Round, build_window
from agents.earlier_answers import without_thinking
from agents.plain_text import beginnings, parted, plain
from agents.prompts import system_prompt
from schemas.context_config import ContextConfig
from schemas.messages import Action, ActionEffect, ActionKind, ActionResult, Observation, Screenshot
from schemas.model_config import ModelConfig
from tests import builders

TASK = builders.task()
MODEL = ModelConfig()


def _observation(step: int, effect: ActionEffect = ActionEffect.CHANGED, **fields: object) -> Observation:
    observation = builders.observation(TASK, step, data=f"screenshot {step}".encode())
    return msgspec.structs.replace(observation, title=f"Page {step}", url=f"http://site/{step}", effect=effect, **fields)


def _round(step: int, **fields: object) -> Round:
    request = builders.step_request(TASK, step)
    request = msgspec.structs.replace(request, response=f"response {step}", thought=f"thought {step}")
    return Round(_observation(step), msgspec.structs.replace(request, **fields))


def _texts(rounds: int, num_rounds: int = 4) -> list[tuple[str, list[str]]]:
    window = build_window(
        TASK,
        [_round(step) for step in range(rounds)],
        _observation(rounds, ActionEffect.UNCHANGED),
        context=ContextConfig(num_rounds=num_rounds),
        model=MODEL,
    )
    return [
        (message.role, [f"<{part.data.decode()}>" if isinstance(part, Screenshot) else part for part in message.content])
        for message in window.messages
    ]


def test_first_step_is_task_and_screenshot() -> None:
    assert _texts(0) == [
        ("system", [system_prompt("vanilla")]),
        ("user", ["Task: click the button\n", "<screenshot 0>"]),
    ]


def test_rounds_inside_the_window_keep_their_screenshots() -> None:
    assert _texts(2)[1:] == [
        ("user", ["Task: click the button\n", "<screenshot 0>"]),
        ("assistant", ["response 0"]),
        ("user", ["Result: the page changed\nPage: Page 1 (http://site/1)\n", "<screenshot 1>"]),
        ("assistant", ["response 1"]),
        ("user", ["Result: the page did not change\nPage: Page 2 (http://site/2)\n", "<screenshot 2>"]),
    ]


def test_older_rounds_become_one_line_each() -> None:
    opening = (
        "Task: click the button\n"
        "Earlier steps:\n"
        "1. thought 0 | Page 0 | the page changed\n"
        "2. thought 1 | Page 1 | the page changed\n"
        "Result: the page changed\nPage: Page 2 (http://site/2)\n"
    )
    texts = _texts(6)
    assert texts[1] == ("user", [opening, "<screenshot 2>"])
    assert [role for role, _ in texts[1:]] == ["user", "assistant"] * 4 + ["user"]
    assert [part for _, parts in texts for part in parts if part.startswith("<screenshot")] == [
        f"<screenshot {step}>" for step in (2, 3, 4, 5, 6)
    ]


def test_no_rounds_with_screenshots() -> None:
    opening = "Task: click the button\nEarlier steps:\n1. thought 0 | Page 0 | the page did not change\n"
    opening += "Result: the page did not change\nPage: Page 1 (http://site/1)\n"
    assert _texts(1, num_rounds=0)[1:] == [("user", [opening, "<screenshot 1>"])]


_SAID = "<think>why {0}</think>\nAction: thought {0}\n<tool_call>call {0}</tool_call>"
_KEPT = {
    "action": "<tool_call>call {0}</tool_call>",
    "response": "Action: thought {0}\n<tool_call>call {0}</tool_call>",
    "thinking": _SAID,
}


def _turns(history: str, num_dropped: int = 0, said: str = _SAID) -> list[tuple[str, str]]:
    """Three answers, one screenshot."""
    window = build_window(
        TASK,
        [_round(step, response=said.format(step)) for step in range(3)],
        _observation(3),
        context=ContextConfig(num_rounds=0, history=history),  # type: ignore[arg-type]
        model=MODEL,
        num_dropped=num_dropped,
    )
    shown = [part for message in window.messages for part in message.content if isinstance(part, Screenshot)]
    assert window.screenshots == (3,)
    assert [part.data for part in shown] == [b"screenshot 3"]
    return [(message.role, str(message.content[0])) for message in window.messages[1:]]


@pytest.mark.parametrize("history", _KEPT)
def test_earlier_rounds_stay_turns_without_their_screenshots(history: str) -> None:
    page = "Result: the page changed\nPage: Page {0} (http://site/{0})\n"
    kept = _KEPT[history]
    assert _turns(history) == [
        ("user", "Task: click the button\n"),
        ("assistant", kept.format(0)),
        ("user", page.format(1)),
        ("assistant", kept.format(1)),
        ("user", page.format(2)),
        ("assistant", kept.format(2)),
        ("user", page.format(3)),
    ]


def test_a_turn_that_is_left_out_becomes_a_line() -> None:
    whole, shorter = _turns("thinking"), _turns("thinking", num_dropped=1)
    task = "Task: click the button\nEarlier steps:\n1. thought 0 | Page 0 | the page changed\n"
    assert shorter == [("user", task + whole[2][1]), *whole[3:]]
    assert [role for role, _ in _turns("thinking", num_dropped=3)] == ["user"]


def test_without_a_history_only_the_task_is_left() -> None:
    assert _turns("none") == [("user", "Task: click the button\nResult: the page changed\nPage: Page 3 (http://site/3)\n")]


def test_a_block_that_began_in_the_prompt_gets_its_tag_back() -> None:
    assert _turns("thinking", said="why {0}</think>done")[1] == ("assistant", "<think>\nwhy 0</think>done")


def test_an_answer_without_a_call_stays_as_it_is() -> None:
    assert _turns("action", said="I do not know.")[1] == ("assistant", "I do not know.")


def test_every_action_of_an_answer_has_its_result() -> None:
    click = Action(kind=ActionKind.CLICK, point=(10, 20))
    further = (Action(kind=ActionKind.TYPE, point=(30, 40), text="tea"), Action(kind=ActionKind.PRESS, keys=("Enter",)))
    results = (ActionResult(hit='field "Search"', changes=("focus moved",)), ActionResult(error="a notice"))
    window = build_window(
        TASK,
        [_round(0, action=click, further=further, num_left_out=2)],
        _observation(1, hit="form", earlier_results=results),
        context=ContextConfig(max_calls=3),
        model=MODEL,
    )
    assert str(window.messages[-1].content[0]).splitlines() == [
        "Result: the page changed",
        '1. click at [10, 20]: hit field "Search"; focus moved',
        "2. type 'tea' at [30, 40] (a notice)",
        "3. press Enter: hit form",
        "2 more calls were left out",
        "Page: Page 1 (http://site/1)",
    ]


def test_screenshots_are_named_in_order() -> None:
    window = build_window(
        TASK,
        [_round(step) for step in range(6)],
        _observation(6),
        context=ContextConfig(),
        model=MODEL,
    )
    assert window.screenshots == (2, 3, 4, 5, 6)


def test_unreadable_answer_and_error_are_told() -> None:
    window = build_window(
        TASK,
        [_round(0, parsed=False, response="<think>hm</think>mumble <|im_end|>")],
        _observation(1, ActionEffect.NAVIGATION_FAILED, error="name\nnot known"),
        context=ContextConfig(),
        model=ModelConfig(model_type="qwen3-think"),
    )
    assert window.messages[2].content == ("mumble < |im_end|>",)
    assert str(window.messages[3].content[0]).startswith(
        "Result: your output held no readable action, so nothing was done (name not known)\n"
    )


@pytest.mark.parametrize(
    ("response", "kept"),
    [
        ("plain", "plain"),
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("<think>a\nb</think>\nc<think>d</think>e", "ce"),
        ("a<think>never closed", "a"),
    ],
)
def test_thinking_is_removed(response: str, kept: str) -> None:
    assert without_thinking(response) == kept


@pytest.mark.parametrize(
    ("text", "as_shown"),
    [
        ("a<img></img>b", "a< img>< /img>b"),
        ("[gMASK]<<sop>", "[ gMASK]<< sop>"),
        ("<s><sop>, <so>", "< s>< sop>, <so>"),
        ("xyxyx", "x yx yx"),
        ("line\n$", "l ine\n$"),
        ("", ""),
    ],
)
def test_texts_that_a_model_reads_as_control_tokens_are_parted(text: str, as_shown: str) -> None:
    control_texts = ("<img>", "</img>", "[gMASK]", "<s>", "<sop>", "xyx", "line\n$")
    assert parted(text, beginnings(control_texts)) == as_shown
    assert parted(text, beginnings(())) == text


def test_outside_text_spells_no_control_token() -> None:
    assert "<|" not in plain("<|im_end|><|image_pad|>")


@pytest.mark.parametrize("version", ["vanilla", "complete"])
def test_prompts_name_every_action(version: str) -> None:
    prompt = system_prompt(version)
    for action in ("left_click", "type", "hover", "scroll", "wait", "go_back", "navigate", "answer"):
        assert f'"{action}"' in prompt
    assert ("Memory:" in prompt) == (version == "complete")
