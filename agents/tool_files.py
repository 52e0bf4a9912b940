"""Millrace's own tools, from the JSON files beside the vocabularies."""

from collections.abc import Mapping
from importlib import resources
from string import Template

import msgspec

from agents.tool import Tool, ToolAction, tool_definition
from schemas.messages import ActionKind


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


def tool_of_files(*, marked: bool, extended: bool) -> Tool:
    """Millrace's own tool: `web_interaction` for marks, `computer_use` for points."""
    name = "web_interaction" if marked else "computer_use"
    shared = msgspec.json.decode(_text("actions.json"), type=_ActionsFile)
    own = msgspec.json.decode(_text(f"{name}.json"), type=_ToolFile)
    words: dict[str, str] = msgspec.to_builtins(own.words)
    actions = [_action(entry, own, words, extended=extended) for entry in shared.actions if extended or not entry.added]
    arguments = {**own.arguments, **shared.arguments}
    if extended:
        arguments |= {argument: {**arguments[argument], **change} for argument, change in shared.extended.items()}
    definition = tool_definition(name, own.description, actions, arguments)
    by_kind = {action.kind: action for action in actions}
    example = f'{{"name": "{name}", "arguments": {{"action": "{by_kind[ActionKind.CLICK].name}", {own.example}}}}}'
    return Tool(
        name=name,
        actions=by_kind,
        definition=definition,
        example=example,
        directions=("up", "down", "left", "right") if extended else ("up", "down"),
        types_at_focus=extended,
    )


def _text(file: str) -> str:
    return resources.files("agents.vocabularies").joinpath(file).read_text(encoding="utf-8")


def _action(entry: _ActionEntry, own: _ToolFile, words: Mapping[str, str], *, extended: bool) -> ToolAction:
    variant: _Entry = entry.extended if extended and entry.extended else entry
    return ToolAction(
        kind=entry.kind,
        name=own.names.get(entry.kind, entry.kind.value),
        does=Template(variant.does).substitute(words),
        needs=tuple(words.get(argument, argument) for argument in variant.needs),
        may=tuple(words.get(argument, argument) for argument in variant.may),
    )
