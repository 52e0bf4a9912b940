"""Conversations rendered for a model: which tokens are learnt, worked out by hand, and what stands in each prompt."""

from itertools import pairwise
from pathlib import Path

import pytest

from agents.tokens import PromptTokenizer
from ops.sft.conversation import Conversation, Message
from ops.sft.findings import BadRecord, Findings
from ops.sft.formats import ReadingOptions, reader_of
from ops.sft.images import screenshot_of
from ops.sft.rendering import RenderedTurn, Renderer
from tests.support.sft.conversations import (
    THINKING_TEMPLATE,
    call,
    episode,
    image_part,
    png,
    raw_rows,
    thinking_model,
    write_lines,
)
from tests.support.sft.templates import QWEN3_VL_THINKING, QWEN35

_NUM_IMAGE_TOKENS = 12
"""Of a screenshot of 160 x 210 before the tiny model."""
SYSTEM = (
    "<|im_start|>system\nYou browse.\n\n<tools>\n"
    '{"type": "function", "function": {"name": "click", "parameters": {"type": "object"}}}\n</tools><|im_end|>\n'
)
SHOT = "<|vision_start|><|image_pad|><|vision_end|>"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PromptTokenizer:
    return PromptTokenizer(thinking_model(tmp_path_factory.mktemp("model")))


def conversation(tmp_path: Path, records: list[dict[str, object]]) -> Conversation:
    file = write_lines(tmp_path / "a.jsonl", records)
    (found,) = reader_of("openai")(file, Findings(), ReadingOptions())
    return found.conversation


def answer(turn: int) -> str:
    return f'Thought {turn}\n</think>\n\n<tool_call>\n{{"name": "click", "arguments": {{"x": {turn}}}}}\n</tool_call>'


def prompt(turn: int, shots: tuple[str, str, str]) -> str:
    """Written out: every earlier thought stands in it, though the template leaves them out."""
    text = f"{SYSTEM}<|im_start|>user\nTask: t1\nscreenshot:\n{shots[0]}<|im_end|>\n"
    for earlier in range(turn):
        text += f"<|im_start|>assistant\n<think>\n{answer(earlier)}<|im_end|>\n"
        text += f"<|im_start|>user\n<tool_response>\ndone\n{shots[earlier + 1]}</tool_response><|im_end|>\n"
    return f"{text}<|im_start|>assistant\n<think>\n"


@pytest.mark.parametrize("raw", [False, True])
def test_of_three_turns_each_answer_is_learnt_behind_its_own_prompt(
    tokenizer: PromptTokenizer, tmp_path: Path, raw: bool
) -> None:
    turns = Renderer(tokenizer=tokenizer).turns(conversation(tmp_path, raw_rows() if raw else [episode()]))
    assert [turn.answer for turn in turns] == [answer(0), answer(1), answer(2)]
    assert [turn.prompt for turn in turns] == [prompt(turn, (SHOT, SHOT, SHOT)) for turn in range(3)]
    assert [turn.shown for turn in turns] == [(0,), (0, 1), (0, 1, 2)]
    for number, turn in enumerate(turns):
        assert turn.answer_tokens == (*tokenizer.encode(answer(number)), tokenizer.end_of_turn)
        unexpanded = tokenizer.encode(turn.prompt)
        assert len(turn.prompt_tokens) == len(unexpanded) + (number + 1) * (_NUM_IMAGE_TOKENS - 1)
        assert turn.prompt_tokens.count(tokenizer.image_token) == (number + 1) * _NUM_IMAGE_TOKENS
        assert [token for token in turn.prompt_tokens if token != tokenizer.image_token] == [
            token for token in unexpanded if token != tokenizer.image_token
        ]


def test_a_prompt_keeps_so_many_of_the_latest_screenshots(tokenizer: PromptTokenizer, tmp_path: Path) -> None:
    def turns(count: int) -> list[RenderedTurn]:
        return Renderer(tokenizer=tokenizer, num_screenshots=count).turns(conversation(tmp_path, [episode()]))

    assert [turn.shown for turn in turns(2)] == [(0,), (0, 1), (1, 2)]
    assert [turn.shown for turn in turns(1)] == [(0,), (1,), (2,)]
    assert turns(1)[2].prompt == prompt(2, ("", "", SHOT))
    assert [turn.shown for turn in turns(0)] == [(), (), ()]
    assert turns(0)[2].prompt == prompt(2, ("", "", ""))


def test_an_answer_of_weight_0_stands_in_prompts_and_is_not_learnt(tokenizer: PromptTokenizer, tmp_path: Path) -> None:
    record = episode(2)
    record["messages"][2]["weight"] = 0
    first, second = Renderer(tokenizer=tokenizer).turns(conversation(tmp_path, [record]))
    assert first.answer_tokens == ()
    assert answer(0) in second.prompt


def told(tokenizer: PromptTokenizer, *messages: Message) -> str:
    with pytest.raises(BadRecord) as refused:
        Renderer(tokenizer=tokenizer).turns(Conversation(messages=messages))
    return str(refused.value)


def test_what_the_model_would_misread_or_cannot_be_shown_is_refused(tokenizer: PromptTokenizer) -> None:
    asked, said = Message(role="user", parts=("hello",)), Message(role="assistant", parts=("yes",))
    shot = screenshot_of(png(1), "image")
    assert "message 1 spells <|im_end|>" in told(tokenizer, Message(role="user", parts=("<|im_end|>",)), said)
    assert "no message of an assistant" in told(tokenizer, asked)
    assert "answer 1 follows several screenshots" in told(tokenizer, Message(role="user", parts=(shot, shot)), said)
    assert "answer 1 holds an image" in told(tokenizer, asked, Message(role="assistant", parts=(shot,)))


def test_a_template_that_drops_calls_or_answers_is_told(tmp_path: Path) -> None:
    folder = thinking_model(tmp_path / "model")
    called = conversation(tmp_path, [episode(2)])
    for changed, what in (
        (THINKING_TEMPLATE.replace("message.tool_calls or []", "[]"), "leaves out the call of answer 1"),
        (THINKING_TEMPLATE.replace("{{ said }}", "{{ said | upper }}"), "does not keep answer 1 in later prompts"),
        (
            THINKING_TEMPLATE.replace("{%- for call", "{{ raise_exception('no tools') }}{%- for call"),
            "cannot render it: no tools",
        ),
    ):
        (folder / "chat_template.jinja").write_text(changed)
        with pytest.raises(BadRecord, match=what):
            Renderer(tokenizer=PromptTokenizer(folder)).turns(called)


def test_whether_a_template_takes_tools_is_found_out(tokenizer: PromptTokenizer, tmp_path: Path) -> None:
    tools = conversation(tmp_path, [episode(1)]).tools
    assert Renderer(tokenizer=tokenizer).takes(tools)
    folder = thinking_model(tmp_path / "model")
    (folder / "chat_template.jinja").write_text(THINKING_TEMPLATE.replace("{%- if tools -%}", "{%- if false -%}"))
    assert not Renderer(tokenizer=PromptTokenizer(folder)).takes(tools)


CALLED = {
    QWEN35: "<tool_call>\n<function=click>\n<parameter=x>\n{0}\n</parameter>\n</function>\n</tool_call>",
    QWEN3_VL_THINKING: '<tool_call>\n{{"name": "click", "arguments": {{"x": {0}}}}}\n</tool_call>',
}


@pytest.mark.parametrize("template", [QWEN35, QWEN3_VL_THINKING], ids=["qwen3.5", "qwen3-vl-thinking"])
@pytest.mark.parametrize("num_screenshots", [None, 1])
def test_earlier_thoughts_stand_in_prompts_whatever_follows_them(
    tmp_path: Path, template: str, num_screenshots: int | None
) -> None:
    """An answer with a tool's answer behind it, one with a user's, and one without a thought."""
    folder = thinking_model(tmp_path / "model")
    (folder / "chat_template.jinja").write_text(template)
    record = episode(2)
    del record["tools"]
    record["messages"] += [
        {"role": "user", "content": [{"type": "text", "text": "Again."}, image_part(5)]},
        {"role": "assistant", "content": None, "tool_calls": [call(2, x=2)]},
        {"role": "tool", "tool_call_id": "c2", "name": "click", "content": "ok"},
        {"role": "assistant", "content": "<think>\nThought 3\n</think>\n\nDone."},
    ]
    tokenizer = PromptTokenizer(folder)
    turns = Renderer(tokenizer=tokenizer, num_screenshots=num_screenshots).turns(conversation(tmp_path, [record]))
    called = [CALLED[template].format(number) for number in range(3)]
    answers = [
        f"Thought 0\n</think>\n\n{called[0]}",
        f"Thought 1\n</think>\n\n{called[1]}",
        f"\n</think>\n\n{called[2]}",
        "Thought 3\n</think>\n\nDone.",
    ]
    assert [turn.answer for turn in turns] == answers
    asks = "<|im_start|>assistant\n<think>\n"
    shots = ("", "", SHOT) if num_screenshots else (SHOT, SHOT, SHOT)
    assert turns[3].prompt == (
        f"<|im_start|>system\nYou browse.<|im_end|>\n<|im_start|>user\nTask: t1\nscreenshot:\n{shots[0]}<|im_end|>\n"
        f"{asks}{answers[0]}<|im_end|>\n<|im_start|>user\n<tool_response>\ndone\n{shots[1]}\n</tool_response><|im_end|>\n"
        f"{asks}{answers[1]}<|im_end|>\n<|im_start|>user\nAgain.{shots[2]}<|im_end|>\n"
        f"{asks}{answers[2]}<|im_end|>\n<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n{asks}"
    )
    if num_screenshots is None:
        assert all(later.prompt.startswith(f"{turn.prompt}{turn.answer}<|im_end|>\n") for turn, later in pairwise(turns)), (
            "each prompt goes on from what was said"
        )
    for turn in turns:
        assert [token for token in turn.prompt_tokens if token != tokenizer.image_token] == [
            token for token in tokenizer.encode(turn.prompt) if token != tokenizer.image_token
        ]


def test_control_tokens_in_calls_and_tools_are_refused(tokenizer: PromptTokenizer, tmp_path: Path) -> None:
    in_call, in_tool, in_name = episode(2), episode(1), episode(1)
    in_call["messages"][-1]["tool_calls"] = [call(1, text=["a", {"b": "x<|im_end|>"}])]
    in_tool["tools"] = [{"type": "function", "function": {"name": "click", "description": "<|im_start|>user"}}]
    in_name["messages"][-1]["tool_calls"][0]["function"]["name"] = "<|image_pad|>"
    for record, what in (
        (in_call, r"message 5 spells <\|im_end\|>"),
        (in_tool, r"a tool spells <\|im_start\|>"),
        (in_name, r"message 3 spells <\|image_pad\|>"),
    ):
        with pytest.raises(BadRecord, match=what):
            Renderer(tokenizer=tokenizer).turns(conversation(tmp_path, [record]))


def test_a_tokenizer_that_control_tokens_do_not_part_is_asked_for_whole_prompts(tmp_path: Path) -> None:
    class Joined(PromptTokenizer):
        """Says something of where a text begins."""

        def encode(self, text: str) -> list[int]:
            return [*super().encode("."), *super().encode(text)]

    joined = Joined(thinking_model(tmp_path / "model"))
    for turn in Renderer(tokenizer=joined, num_screenshots=0).turns(conversation(tmp_path, [episode()])):
        assert list(turn.prompt_tokens) == joined.encode(turn.prompt)
