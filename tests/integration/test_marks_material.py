"""The quickstart's material for pages of suites: tasks of every page, and a model that reads them in few tokens."""

import dataclasses
import json
from pathlib import Path

import pytest

from agents.tokens import PromptTokenizer
from ops.config.loading import load_config
from ops.quickstart.material import make_material
from ops.quickstart.recipe import FAMILIES, family_named
from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
_PAGES, _UNSEEN = ("click-button", "enter-text", "form-sequence-2"), ("focus-text",)


def _tasks(folder: RunFolder, name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder.tasks / f"{name}.jsonl").read_text().splitlines()]


async def test_tasks_of_every_page_never_coincide_and_are_read_word_by_word(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    config = load_config("quickstart_miniwob", [])
    folder.create(dataclasses.replace(config, save_path=str(folder.path), data_path=str(folder.path)))
    family = dataclasses.replace(
        FAMILIES["miniwob"],
        pages=_PAGES,
        unseen_pages=_UNSEEN,
        num_demonstrations=9,
        num_train=6,
        num_held_out=3,
        num_unseen=2,
    )

    await make_material(folder, family, seed=2)

    shown, train, held_out = (_tasks(folder, name) for name in ("demonstrations", "train", "held_out"))
    assert [task["subdomain"] for task in shown[:4]] == [*_PAGES, _PAGES[0]], "any beginning holds all pages"
    assert [len(shown), len(train), len(held_out)] == [9, 6, 5]
    assert {task["subdomain"] for task in held_out} == {*_PAGES, *_UNSEEN}
    websites = [task["website"] for task in (*shown, *train, *held_out)]
    assert len(set(websites)) == len(websites)
    tokenizer = PromptTokenizer(folder.model)
    text = 'Elements:\n[1] button "Submit"\n[2] input[type=text]\n'
    assert len(tokenizer.encode(text)) == 9
    assert tokenizer.decode(tokenizer.encode(text)) == text


async def test_buttons_are_told_by_their_labels_where_only_those_are_read(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    family = family_named("find_button", "marks")
    config = load_config(family.recipe, [])
    folder.create(dataclasses.replace(config, save_path=str(folder.path), data_path=str(folder.path)))

    await make_material(folder, dataclasses.replace(family, num_demonstrations=6, num_train=8, num_held_out=4), seed=2)

    shown, train, held_out = (_tasks(folder, name) for name in ("demonstrations", "train", "held_out"))
    assert [len(shown), len(train), len(held_out)] == [6, 8, 4]
    assert all(task["task_name"].startswith('Click the "') for task in (*shown, *train, *held_out))
    assert shown[0]["website"].startswith("demo:find_button?by=label&seed=2")
    with pytest.raises(ConfigurationError, match="miniwob cannot be observed as pixels yet: write --observe marks"):
        family_named("miniwob", "pixels")


@pytest.mark.parametrize(
    ("name", "board"), [("frozen_lake", "__G_ O_O_ __O_ @___"), ("sokoban", "###### #__._# #_$__# #@___# #____# ######")]
)
async def test_maps_are_read_cell_by_cell(tmp_path: Path, name: str, board: str) -> None:
    folder = RunFolder(tmp_path / "run")
    config = load_config(FAMILIES[name].recipe, [])
    folder.create(dataclasses.replace(config, save_path=str(folder.path), data_path=str(folder.path)))
    family = dataclasses.replace(FAMILIES[name], num_demonstrations=3, num_train=4, num_held_out=2, num_unseen=1)

    await make_material(folder, family, seed=2)

    shown, train, held_out = (_tasks(folder, name) for name in ("demonstrations", "train", "held_out"))
    assert [len(shown), len(train), len(held_out)] == [3, 4, 3]
    assert [task["subdomain"] for task in held_out[-2:]] == [*family.pages, *family.unseen_pages]
    tokenizer = PromptTokenizer(folder.model)
    assert len(tokenizer.encode(board)) == len(board)
    assert len(tokenizer.encode(f"Task: {shown[0]['task_name']}\n")) == 3
    answer = '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "element_id": 3}}\n</tool_call>'
    assert tokenizer.decode(tokenizer.encode(answer)) == answer
