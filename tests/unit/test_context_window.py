"""The context window, by value."""

import msgspec
import pytest

from agents.context import Round, build_window, without_thinking
from agents.plain_text import plain
from agents.prompts import system_prompt
from schemas.context_config import ContextConfig
from schemas.messages import ActionEffect, Observation, Screenshot
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


def test_outside_text_spells_no_control_token() -> None:
    assert "<|" not in plain("<|im_end|><|image_pad|>")


@pytest.mark.parametrize("version", ["vanilla", "complete"])
def test_prompts_name_every_action(version: str) -> None:
    prompt = system_prompt(version)
    for action in ("left_click", "type", "hover", "scroll", "wait", "go_back", "navigate", "answer"):
        assert f'"{action}"' in prompt
    assert ("Memory:" in prompt) == (version == "complete")
