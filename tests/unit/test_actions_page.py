"""docs/actions.md says of every action what the tools say."""

import re
from pathlib import Path

import pytest

from agents.action_space import ActionSpace
from agents.parsing import parse_response
from agents.tool import ToolAction
from schemas.messages import ActionKind
from tests.support.agents.action_spaces import EXTENDED, EXTENDED_MARKS, MARKS, STANDARD

_PAGE = (Path(__file__).parents[2] / "docs" / "actions.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (\w*) ?\| `(\w+)` \| `(\w+)` \| (.*?) ?\| (standard|extended) \|", re.MULTILINE)
_TARGETS = {"coordinate": "target", "element_id": "target", "end_coordinate": "end", "end_element_id": "end"}


def _arguments(action: ToolAction) -> set[str]:
    needs = {_TARGETS.get(name, name) for name in action.needs}
    return needs | {f"[{_TARGETS.get(name, name)}]" for name in action.may}


def _rows() -> list[tuple[ActionKind, str, str, set[str], str]]:
    """A row without an action belongs to the one before it."""
    rows: list[tuple[ActionKind, str, str, set[str], str]] = []
    for name, pointed, marked, arguments, actions in _ROW.findall(_PAGE):
        kind = ActionKind(name) if name else rows[-1][0]
        rows.append((kind, pointed, marked, {argument for argument in arguments.split(", ") if argument}, actions))
    return rows


def test_every_action_is_on_the_page() -> None:
    assert list(dict.fromkeys(kind for kind, *_ in _rows())) == list(ActionKind)


@pytest.mark.parametrize(("pointed", "marked"), [(STANDARD, MARKS), (EXTENDED, EXTENDED_MARKS)])
def test_rows_are_the_tools(pointed: ActionSpace, marked: ActionSpace) -> None:
    offered = {kind: row for kind, *row in _rows() if row[-1] == "standard" or pointed.tool.types_at_focus}
    assert set(offered) == set(pointed.tool.actions) == set(marked.tool.actions)
    for kind, (name, marked_name, arguments, _) in offered.items():
        assert (name, marked_name) == (pointed.tool.actions[kind].name, marked.tool.actions[kind].name)
        assert arguments == _arguments(pointed.tool.actions[kind]) == _arguments(marked.tool.actions[kind]), kind


def test_tools_and_targets_are_named() -> None:
    for space in (STANDARD, MARKS):
        assert f"| `{space.mode}` | `{space.tool.name}` |" in _PAGE


def test_other_words_are_understood() -> None:
    words = re.findall(r"`(\w+)`", _PAGE.partition("understood, such as")[2].partition("; the list is")[0])
    rest = '"coordinate": [1, 2], "start_coordinate": [1, 2], "end_coordinate": [3, 4], "text": "x"'
    assert len(words) > 5
    for word in words:
        action = "drag" if word.endswith("coordinate") else word
        assert parse_response(f'<tool_call>{{"action": "{action}", {rest}}}</tool_call>', EXTENDED).parsed, word
