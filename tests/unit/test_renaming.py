"""Demonstrations that say the same of other words and other numbers."""

from pathlib import Path

import numpy as np
import pytest

from agents.action_space import ActionSpace
from ops.quickstart.marks_phrases import WORDS, marks_phrases
from ops.quickstart.renaming import Renaming
from ops.quickstart.tiny_model import SPECIAL_TOKENS
from ops.quickstart.word_tokenizer import word_tokenizer
from schemas.context_config import ContextConfig
from schemas.model_config import ModelConfig
from tests.support.training.spoken_sample import spoken_sample
from trainer.samples import Sample

_MARKS = ActionSpace.of(ContextConfig(interaction_mode="set_of_marks", actions="extended"))
_TOKENIZER = word_tokenizer([], words=WORDS, phrases=marks_phrases(_MARKS, ModelConfig()), special_tokens=SPECIAL_TOKENS)
_PAGE = 'Elements:\n[1] button "picture"\n[2] button "menu zq"\n[3] button "date"\n<|vision_start|><|vision_end|><|im_end|>\n'
_ANSWER = (
    'Action: Click "menu zq".\n<tool_call>\n{"name": "web_interaction", "arguments": {"action": "click", "element_id": 2}}\n'
    "</tool_call><|im_end|>"
)
_DAYS = 'Elements:\n[12] link "26"\n[27] link "12"\n[28] link "27"\n<|vision_start|><|vision_end|><|im_end|>\n'
_DAY = _ANSWER.replace("menu zq", "27").replace('"element_id": 2', '"element_id": 28')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _TOKENIZER.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def _sample(task: str, page: str = _PAGE, answer_text: str = _ANSWER) -> Sample:
    return spoken_sample(_TOKENIZER, f"<|im_start|>user\nTask: {task}\n{page}<|im_start|>assistant\n", answer_text)


def _texts(folder: Path, task: str, *parts: str, number: int = 60) -> list[str]:
    renaming, sample, rng = Renaming(folder), _sample(task, *parts), np.random.default_rng(1)
    return [_TOKENIZER.decode(renaming(sample, rng).tokens.tolist(), skip_special_tokens=False) for _ in range(number)]


def test_what_task_page_and_answer_share_becomes_the_same_other_words_everywhere(folder: Path) -> None:
    said = set()
    for text in _texts(folder, "click menu zq"):
        task = text.partition("Task: click ")[2].partition("\n")[0]
        assert text.count(f'"{task}"') == 2, "once on the page and once in the answer"
        assert '"picture"' in text, "the task does not name it"
        assert '"date"' in text
        said.add(task)
    assert "menu zq" in said
    assert len(said) > 20


def test_elements_get_other_numbers_in_the_same_order(folder: Path) -> None:
    seen = set()
    for text in _texts(folder, "click menu zq"):
        numbers = [int(line.partition("]")[0][1:]) for line in text.splitlines() if line.startswith("[")]
        assert numbers == sorted(set(numbers))
        assert f'"element_id": {numbers[1]}}}' in text, "the answer means the same element"
        seen.add(tuple(numbers))
    assert (1, 2, 3) in seen
    assert len(seen) > 20


def test_where_order_counts_numbers_stay(folder: Path) -> None:
    for text in _texts(folder, "click the 2nd button"):
        assert [line[:4] for line in text.splitlines() if line.startswith("[")] == ["[1] ", "[2] ", "[3] "]
        assert '"element_id": 2}' in text


def test_a_number_that_task_and_page_share_becomes_another_and_the_element_stays(folder: Path) -> None:
    """The day and the month of a date are each a number of the calendar's; elements have such numbers too."""
    days = set()
    for text in _texts(folder, "select 12/27/2016", _DAYS, _DAY):
        month, day, _ = text.partition("Task: select ")[2].partition("\n")[0].split("/")
        lines = [line for line in text.splitlines() if line.startswith("[")]
        assert [line.partition('"')[2] for line in lines] == ['26"', f'{month}"', f'{day}"']
        assert f'Click "{day}".' in text
        element = lines[2].partition("]")[0][1:]
        assert f'"element_id": {element}}}' in text, "the answer means the same element"
        days.add(day)
    assert len(days) > 20


def test_the_sample_itself_is_left_as_it_is(folder: Path) -> None:
    renaming, sample, rng = Renaming(folder), _sample("click menu zq"), np.random.default_rng(1)
    before = sample.tokens.copy()
    for _ in range(20):
        varied = renaming(sample, rng)
        assert len(varied.tokens) == len(before)
    assert (sample.tokens == before).all()
