"""System prompts: word for word as they were read through, and true of the actions."""

import hashlib
import json
from pathlib import Path

import pytest

from agents.action_space import ActionSpace
from agents.prompts import system_prompt
from schemas.context_config import ContextConfig
from schemas.messages import ActionKind
from tests.support.agents import action_spaces

_STORED = Path(__file__).parents[1] / "fixtures" / "prompts"


@pytest.mark.parametrize("space", action_spaces.ALL)
@pytest.mark.parametrize("version", ["vanilla", "complete"])
def test_word_for_word(version: str, space: ActionSpace) -> None:
    stored = _STORED / f"{version}-{space.mode}-{space.actions}.txt"
    assert f"{system_prompt(version, space)}\n" == stored.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("version", "digest"),
    [
        ("vanilla", "d9f21fd4797e9d811b7e56ac6a46a60f763eba9cca5a0ab2d1f84e4b024d55a1"),
        ("complete", "70c630f25aa665b7a21a1007b42274e9b35ec07ca985e058fd6fa182f2f1ef0c"),
    ],
)
def test_the_default_prompt_stays_as_released(version: str, digest: str) -> None:
    """Models that were trained with it would meet another one."""
    assert hashlib.sha256(system_prompt(version).encode()).hexdigest() == digest


def test_the_default_space_is_the_default_configuration() -> None:
    assert ActionSpace.of(ContextConfig()) == ActionSpace()
    configured = ContextConfig(interaction_mode="set_of_marks", actions="extended")
    assert ActionSpace.of(configured) == action_spaces.EXTENDED_MARKS


@pytest.mark.parametrize("space", action_spaces.ALL)
def test_the_tool_offers_the_set(space: ActionSpace) -> None:
    standard = ("click", "type", "hover", "scroll", "wait", "go_back", "navigate", "answer")
    offered = {kind.value for kind in space.tool.actions}
    assert offered == ({kind.value for kind in ActionKind} if space.tool.types_at_focus else set(standard))


@pytest.mark.parametrize("space", action_spaces.ALL)
def test_the_definition_is_a_schema_of_every_argument(space: ActionSpace) -> None:
    function = json.loads(space.tool.definition)["function"]
    properties = function["parameters"]["properties"]
    actions = space.tool.actions.values()
    assert function["name"] == space.tool.name
    assert properties["action"]["enum"] == [action.name for action in actions]
    assert set(properties) == {"action", *(name for action in actions for name in (*action.needs, *action.may))}
    assert properties["direction"]["enum"] == list(space.tool.directions)
    for name in properties.keys() - {"action"}:
        for action in actions:
            named = (
                action.name in properties[name]["description"].replace(",", " ").replace(".", " ").replace(";", " ").split()
            )
            assert named == (name in (*action.needs, *action.may)), (name, action.name)
