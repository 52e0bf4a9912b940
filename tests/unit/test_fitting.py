"""Prompts that leave room for an answer: by value, and with the tiny model's own tokenizer."""

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    answer = msgspec.structs.replace(builders.step_request(builders.task(), 5), screenshots=screenshots)
    assert windows(5).asked_with(answer).screenshots == shown


def test_an_answer_tells_how_many_turns_its_window_left_out() -> None:
    of = dataclasses.replace(windows(5), context=ContextConfig(num_rounds=1, history="response"))
    for num_dropped in range(7):
        shown = of.without(num_dropped)
        answer = builders.step_request(builders.task(), 5)
        answer = msgspec.structs.replace(answer, screenshots=shown.screenshots, num_dropped=num_dropped)
        assert of.asked_with(answer) == shown
        assert of.shortened(num_dropped) == shown.messages
    assert of.shortened(7) is None


def test_without_a_way_to_shorten_there_is_nothing_shorter() -> None:
    whole = dataclasses.replace(request(windows(3)), num_dropped=3)
    assert whole.shorter() is None
    assert GenerationRequest(messages=(), observation=builders.observation(TASK)).shorter() is None


@dataclasses.dataclass
class Lengths:
    """Of a prompt with so many rounds left out, which its only message says; and the numbers that were tried."""

    lengths: Sequence[int]
    tried: list[int] = dataclasses.field(default_factory=list)

    def prompt(self, messages: Sequence[ChatMessage]) -> list[int]:
        (said,) = messages[0].content
        self.tried.append(int(str(said)))
        return [self.tried[-1]]

    def length(self, tokens: Sequence[int], screenshots: Sequence[Screenshot]) -> int:
        return self.lengths[tokens[0]]

    @property
    def request(self) -> GenerationRequest:
        def messages(number: int) -> tuple[ChatMessage, ...] | None:
            return (ChatMessage("user", (str(number),)),) if number < len(self.lengths) else None

        whole = messages(0)
        assert whole is not None
        return GenerationRequest(messages=whole, observation=builders.observation(TASK), shortened=messages)


def one_after_the_other(lengths: Sequence[int], room: int) -> int | None:
    """The fewest rounds to leave out; None: it fits with no number of them."""
    return next((number for number, length in enumerate(lengths) if length <= room), None)


def chosen_of(lengths: Sequence[int], room: int) -> int | None:
    counter = Lengths(lengths)
    if min(lengths) > room:
        with pytest.raises(PromptTooLong, match=f"has {lengths[-1]} tokens"):
            fitted(counter.request, counter, room)
        return None
    chosen, tokens = fitted(counter.request, counter, room)
    assert tokens == [chosen.num_dropped]
    return chosen.num_dropped


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200), st.integers(0, 50))
def test_as_few_rounds_are_left_out_as_when_they_are_tried_one_after_the_other(lengths: list[int], room: int) -> None:
    falling = sorted(lengths, reverse=True)
    assert chosen_of(falling, room) == one_after_the_other(falling, room)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 5))
def test_where_a_line_is_longer_than_its_round_what_is_chosen_fits_and_one_round_more_does_not(
    lengths: list[int], room: int
) -> None:
    chosen = chosen_of(lengths, room)
    if chosen is not None:
        assert lengths[chosen] <= room
        assert chosen == one_after_the_other(lengths, room) or lengths[chosen - 1] > room


def test_a_hundred_rounds_take_fourteen_prompts_at_most() -> None:
    numbers = dict[int, int]()
    for room in range(1, 102):
        counter = Lengths(range(101, 0, -1))
        chosen, _ = fitted(counter.request, counter, room)
        numbers[chosen.num_dropped] = len(counter.tried)
    assert (numbers[0], numbers[1], max(numbers.values())) == (1, 2, 14)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> PromptTokenizer:
    folder = tmp_path_factory.mktemp("tiny")
    build_tiny_model(folder, sentence_tokenizer(["Task: click the button\n", "Earlier steps:"]), seed=1)
    return PromptTokenizer(folder)


@pytest.mark.parametrize(
    "context",
    [
        ContextConfig(num_rounds=4, history="line"),
        ContextConfig(num_rounds=4, history="none"),
        ContextConfig(num_rounds=0, history="response"),
        ContextConfig(num_rounds=0, history="thinking"),
    ],
    ids=lambda context: context.history,
)
def test_each_further_turn_that_is_left_out_makes_a_prompt_shorter(context: ContextConfig, tiny: PromptTokenizer) -> None:
    """Whatever was said and wherever, and behind the first, whose page had a title that no other line has."""
    draw = random.Random(context.history)

    def words(most: int, letters: str = "ab 日") -> str:
        return "".join(draw.choices(letters, k=draw.randrange(most)))

    def played(step: int) -> Round:
        thought = words(200)
        said = f"<think>{words(90)}</think>Action: {thought}\n<tool_call>{{}}</tool_call>"
        seen = msgspec.structs.replace(builders.observation(TASK, step), title=words(200), url=f"http://s/{words(60, 'ab')}")
        return Round(seen, msgspec.structs.replace(builders.step_request(TASK, step), thought=thought, response=said))

    of = Windows(TASK, [played(step) for step in range(9)], builders.observation(TASK, 9), context, ModelConfig())
    lengths = list[int]()
    while (messages := of.shortened(len(lengths))) is not None:
        lengths.append(len(tiny.expanded_prompt(messages)))
    assert len(lengths) >= 5
    assert lengths[1:] == sorted(lengths[1:], reverse=True)
    for room in {*lengths, *(length - 1 for length in lengths if length > min(lengths))}:
        assert fitted(request(of), tiny, room)[0].num_dropped == one_after_the_other(lengths, room)
