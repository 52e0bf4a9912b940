"""Steps on maps that are turned and mirrored: what was right stays right."""

import re
from pathlib import Path

import numpy as np
import pytest

from agents.action_space import ActionSpace
from ops.quickstart.marks_phrases import WORDS, marks_phrases
from ops.quickstart.tiny_model import SPECIAL_TOKENS
from ops.quickstart.turned_maps import TurnedMaps
from ops.quickstart.word_tokenizer import word_tokenizer
from schemas.context_config import ContextConfig
from schemas.model_config import ModelConfig
from tests.support.training.spoken_sample import spoken_sample
from trainer.samples import Sample

_MARKS = ActionSpace.of(ContextConfig(interaction_mode="set_of_marks", actions="extended"))
_BUTTONS = ("Left", "Up", "Down", "Right")
_TOKENIZER = word_tokenizer(
    [],
    words=(*WORDS, *_BUTTONS),
    phrases=[*marks_phrases(_MARKS, ModelConfig()), *"@_OG"],
    special_tokens=SPECIAL_TOKENS,
)
_STEPS = {"Left": (0, -1), "Up": (-1, 0), "Down": (1, 0), "Right": (0, 1)}
_MAP = "__O_ _@G_ ____ O___"


@pytest.fixture
def turned_maps(tmp_path: Path) -> TurnedMaps:
    _TOKENIZER.save(str(tmp_path / "tokenizer.json"))
    return TurnedMaps(tmp_path)


def _sample(board: str, move: str = "Right", buttons: tuple[str, ...] = _BUTTONS) -> Sample:
    lines = "".join(f'[{number}] button "{name}"\n' for number, name in enumerate(buttons, start=2))
    page = f'Elements:\n[1] div[role=img] "{board}"\n{lines}<|vision_start|><|vision_end|><|im_end|>\n'
    before = f'<|im_start|>user\nEarlier steps:\nAction: Click "{move}".\nResult: the page changed: hit {move}\n'
    number = buttons.index(move) + 2 if move in buttons else 2
    call = f'{{"name": "web_interaction", "arguments": {{"action": "click", "element_id": {number}}}}}'
    answer = f'Action: Click "{move}".\n<tool_call>\n{call}\n</tool_call><|im_end|>'
    return spoken_sample(_TOKENIZER, f"{before}{page}<|im_start|>assistant\n", answer)


def _texts(turned_maps: TurnedMaps, sample: Sample) -> list[str]:
    rng = np.random.default_rng(0)
    return [_TOKENIZER.decode(turned_maps(sample, rng).tokens.tolist(), skip_special_tokens=False) for _ in range(100)]


@pytest.mark.parametrize("move", _BUTTONS)
def test_the_move_that_is_named_and_pressed_leads_to_the_same_cell(turned_maps: TurnedMaps, move: str) -> None:
    rows, columns = _STEPS[move]
    cells = [list("____") for _ in range(4)]
    cells[1][1], cells[1 + rows][1 + columns], cells[0][3] = "@", "G", "O"
    boards = set()
    for text in _texts(turned_maps, _sample(" ".join("".join(row) for row in cells), move)):
        board = re.findall(r'div\[role=img\] "(.*)"', text)[0].split(" ")
        boards.add(tuple(board))
        buttons = dict(re.findall(r'\[(\d)\] button "(\w+)"', text))
        assert tuple(buttons.values()) == _BUTTONS, "buttons stay where they are"
        (pressed,) = re.findall(r'"element_id": (\d)', text)
        (named,) = set(re.findall(r'Click "(\w+)"', text)) | set(re.findall(r"hit (\w+)", text))
        assert buttons[pressed] == named
        (row,) = (number for number, line in enumerate(board) if "@" in line)
        column = board[row].index("@")
        assert board[row + _STEPS[named][0]][column + _STEPS[named][1]] == "G"
        assert sorted("".join(board)) == sorted("".join(map("".join, cells)))
    assert len(boards) == 8


@pytest.mark.parametrize(
    "sample",
    [
        _sample("__O @G_"),
        _sample(_MAP, "Right", ("Up", "Right")),
        _sample("no map at all"),
    ],
)
def test_what_has_no_square_map_or_no_four_buttons_is_left_as_it_is(turned_maps: TurnedMaps, sample: Sample) -> None:
    rng = np.random.default_rng(0)
    assert all((turned_maps(sample, rng).tokens == sample.tokens).all() for _ in range(20))
