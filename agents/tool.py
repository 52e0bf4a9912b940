"""The tool that a policy's actions are calls of, as the model is told of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

from schemas.messages import ActionKind


@dataclass(frozen=True, slots=True)
class ToolAction:
    """One action as the model is told of it."""

    kind: ActionKind
    name: str
    does: str
    needs: tuple[str, ...]
    """Arguments without which a call says nothing."""
    may: tuple[str, ...]
    """Arguments that can be left out."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a system prompt says of an action space."""

    name: str
    actions: Mapping[ActionKind, ToolAction]
    definition: str
    """JSON on one line."""
    example: str
    """A call as the model is to write it, with letters for numbers."""
    directions: tuple[str, ...] = ("up", "down")
    """Of a scroll."""
    types_at_focus: bool = False
    """Text may go to the field with the focus, and without Enter behind it."""

    def kind_of(self, name: str) -> ActionKind | None:
        """Of an action by the name that the tool gives it."""
        return next((kind for kind, action in self.actions.items() if action.name == name), None)


def tool_definition(
    name: str, description: str, actions: Sequence[ToolAction], arguments: Mapping[str, Mapping[str, object]]
) -> str:
    """The JSON schema of a tool, on one line.

    Args:
        name: of the tool.
        description: of the tool.
        actions: all that it offers, in the order in which the model reads them.
        arguments: a JSON schema for each; `$actions` in a description stands for the actions that take it.
    """
    action = {
        "type": "string",
        "enum": [action.name for action in actions],
        "description": " ".join(f"{action.name}: {action.does}." for action in actions),
    }
    properties: dict[str, Mapping[str, object]] = {"action": action}
    for argument, schema in arguments.items():
        needing = [action.name for action in actions if argument in action.needs]
        taking = [action.name for action in actions if argument in action.may]
        if needing or taking:
            text = Template(str(schema["description"])).substitute(actions=_users(needing, taking))
            properties[argument] = {**schema, "description": text}
    parameters = {"type": "object", "required": ["action"], "properties": properties}
    function = {"name": name, "description": description, "parameters": parameters}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


def _users(needing: Sequence[str], taking: Sequence[str]) -> str:
    """Names of actions in words: `a and b`, `a, b, and optionally c`."""
    if not needing or not taking:
        return _listed([*needing, *taking])
    return f"{', '.join(needing)}, and optionally {_listed(taking)}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
