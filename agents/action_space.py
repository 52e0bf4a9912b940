"""Defines the actions a policy may take: how they name their targets, and what they are called."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template
from typing import Literal, Self

import msgspec

from schemas.context_config import ContextConfig
from schemas.messages import ActionKind

GRID = 1000.0
"""Points are given from 0 to this, whatever the screenshot's size."""

_TOOLS = {"coordinates": "computer_use", "set_of_marks": "web_interaction"}


@dataclass(frozen=True, slots=True)
class ActionSpace:
    """The interaction mode and the set of actions of a run."""

    mode: Literal["coordinates", "set_of_marks"] = "coordinates"
    actions: Literal["standard", "extended"] = "standard"

    @classmethod
    def of(cls, context: ContextConfig) -> Self:
        return cls(mode=context.interaction_mode, actions=context.actions)

    @property
    def extended(self) -> bool:
        return self.actions == "extended"

    @property
    def marked(self) -> bool:
        """Whether targets are numbers of marked elements instead of points."""
        return self.mode == "set_of_marks"

    @property
    def directions(self) -> tuple[str, ...]:
        """Of a scroll."""
        return ("up", "down", "left", "right") if self.extended else ("up", "down")

    @property
    def tool(self) -> "Tool":
        return _tool(self)


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


class _Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a mode calls targets."""

    target: str
    end: str


class _ToolFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`computer_use.json` and `web_interaction.json`: what the modes do not share."""

    description: str
    words: _Words
    names: dict[ActionKind, str]
    """Where they are not those of the kinds."""
    arguments: dict[str, dict[str, object]]
    example: str


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an action does, and its arguments; `target` and `end` stand for the mode's own."""

    does: str
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


class _ActionEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: ActionKind
    added: bool = False
    """Only in the extended set."""
    extended: _Entry | None = None
    """Of the extended set, where it differs."""


class _ActionsFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`actions.json`: what both tools share, in the order in which the model reads it."""

    actions: tuple[_ActionEntry, ...]
    arguments: dict[str, dict[str, object]]
    extended: dict[str, dict[str, object]]
    """What the extended set changes about arguments."""


@cache
def _tool(space: ActionSpace) -> Tool:
    name = _TOOLS[space.mode]
    shared = msgspec.json.decode(_text("actions.json"), type=_ActionsFile)
    own = msgspec.json.decode(_text(f"{name}.json"), type=_ToolFile)
    words: dict[str, str] = msgspec.to_builtins(own.words)
    actions = [_action(entry, space, own, words) for entry in shared.actions if space.extended or not entry.added]
    arguments = {**own.arguments, **shared.arguments}
    if space.extended:
        arguments |= {argument: {**arguments[argument], **change} for argument, change in shared.extended.items()}
    definition = _definition(name, own.description, actions, arguments)
    by_kind = {action.kind: action for action in actions}
    example = f'{{"name": "{name}", "arguments": {{"action": "{by_kind[ActionKind.CLICK].name}", {own.example}}}}}'
    return Tool(name=name, actions=by_kind, definition=definition, example=example)


def _text(file: str) -> str:
    return resources.files("agents.prompts").joinpath(file).read_text(encoding="utf-8")


def _action(entry: _ActionEntry, space: ActionSpace, own: _ToolFile, words: Mapping[str, str]) -> ToolAction:
    variant: _Entry = entry.extended if space.extended and entry.extended else entry
    return ToolAction(
        kind=entry.kind,
        name=own.names.get(entry.kind, entry.kind.value),
        does=Template(variant.does).substitute(words),
        needs=tuple(words.get(argument, argument) for argument in variant.needs),
        may=tuple(words.get(argument, argument) for argument in variant.may),
    )


def _definition(
    name: str, description: str, actions: Sequence[ToolAction], arguments: Mapping[str, Mapping[str, object]]
) -> str:
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
