"""Prompts that leave room for an answer: by value, and with the tiny model's own tokenizer."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from agents.context import Round, Windows
from agents.engine import ChatMessage, GenerationRequest
from agents.fitting import fitted, max_prompt
from agents.tokens import PromptTokenizer
from ops.quickstart.tiny_model import build_tiny_model, sentence_tokenizer
from schemas.algorithm_config import AlgorithmConfig
from schemas.config import Config
from schemas.context_config import ContextConfig
from schemas.errors import ConfigurationError, PromptTooLong
from schemas.messages import Screenshot
from schemas.model_config import ModelConfig
from schemas.policy_config import PolicyConfig
from tests import builders

TASK = builders.task()


def rounds(count: int) -> list[Round]:
    answers = [msgspec.structs.replace(builders.step_request(TASK, step), thought=f"step {step}") for step in range(count)]
    return [Round(builders.observation(TASK, step), answer) for step, answer in enumerate(answers)]


def windows(num_answered: int, num_rounds: int = 4) -> Windows:
    current = builders.observation(TASK, num_answered)
    return Windows(TASK, rounds(num_answered), current, ContextConfig(num_rounds=num_rounds), ModelConfig())


def request(of: Windows) -> GenerationRequest:
    return GenerationRequest(messages=of.without(0).messages, observation=of.current, shortened=of.shortened)


class Counted:
    """A screenshot is ten tokens, a message one."""

    def prompt(self, messages: Sequence[ChatMessage]) -> list[int]:
        return [1] * len(messages)

    def length(self, tokens: Sequence[int], screenshots: Sequence[Screenshot]) -> int:
        return len(tokens) + 10 * len(screenshots)


@pytest.mark.parametrize(
    ("num_tokens", "screenshots", "num_dropped"),
    [
        (60, (2, 3, 4, 5, 6), 0),  # system, nine turns, five screenshots
        (59, (3, 4, 5, 6), 1),
        (36, (4, 5, 6), 2),
        (35, (5, 6), 3),
        (12, (6,), 4),
    ],
)
def test_the_oldest_rounds_are_left_out_until_it_fits(num_tokens: int, screenshots: tuple[int, ...], num_dropped: int) -> None:
    of = windows(6)
    chosen, tokens = fitted(request(of), Counted(), num_tokens)
    window = of.without(num_dropped)
    assert (chosen.num_dropped, chosen.messages, len(tokens)) == (num_dropped, window.messages, len(window.messages))
    assert window.screenshots == screenshots
    opening = str(window.messages[1].content[0])
    assert [f"step {step} |" in opening for step in range(6)] == [step < screenshots[0] for step in range(6)], (
        "they keep a line"
    )
    assert chosen.observation is of.current


def test_a_current_round_that_does_not_fit_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(PromptTooLong, match=r"of step 2 of train-r0000-t1-m0 has 12 tokens .* 11 fit .* raise policy_config"):
        fitted(request(windows(2)), Counted(), 11)
    with pytest.raises(PromptTooLong):
        fitted(request(windows(0)), Counted(), 11)


def test_prompt_and_answer_fit_into_model_and_training() -> None:
    policy = PolicyConfig(max_model_len=1000, max_new_tokens=100)
    assert (max_prompt(policy, 2000), max_prompt(policy, 600)) == (900, 500)
    with pytest.raises(ConfigurationError, match="max_new_tokens is 100, and prompt and answer together have 100 tokens"):
        Config(policy_config=policy, algorithm_config=AlgorithmConfig(cutoff_len=100))


def test_with_a_real_tokenizer_the_expanded_prompt_is_what_is_counted(tmp_path: Path) -> None:
    build_tiny_model(tmp_path, sentence_tokenizer(["Task: click the button\n", "Earlier steps:"]), seed=1)
    tokenizer, of = PromptTokenizer(tmp_path), windows(5)
    lengths = [len(tokenizer.expanded_prompt(of.without(num_dropped).messages)) for num_dropped in range(5)]
    assert lengths == sorted(lengths, reverse=True)
    for num_dropped, length in enumerate(lengths):
        for room, expected in ((length, num_dropped), (length - 1, num_dropped + 1)):
            if expected > 4:
                with pytest.raises(PromptTooLong, match=f"has {length} tokens"):
                    fitted(request(of), tokenizer, room)
                continue
            chosen, tokens = fitted(request(of), tokenizer, room)
            assert chosen.num_dropped == expected
            assert tokens == tokenizer.prompt(chosen.messages)
            assert len(tokenizer.expanded_prompt(chosen.messages)) <= room


@pytest.mark.parametrize(
    ("screenshots", "shown"), [((4, 5), (4, 5)), ((5,), (5,)), ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5)), ((), (1, 2, 3, 4, 5))]
)
def test_an_answer_tells_which_window_it_was_asked_with(screenshots: tuple[int, ...], shown: tuple[int, ...]) -> None:
    assert windows(5).asked_with(screenshots).screenshots == shown


def test_without_a_way_to_shorten_there_is_nothing_shorter() -> None:
    whole = dataclasses.replace(request(windows(3)), num_dropped=3)
    assert whole.shorter() is None
    assert GenerationRequest(messages=(), observation=builders.observation(TASK)).shorter() is None
