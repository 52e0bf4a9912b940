"""The tool that a policy's actions are calls of, as the model is told of it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Template

from schemas.messages import Action, ActionKind

Value = str | float | bool | list[int] | list[str]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as a model makes it."""

    name: str
    arguments: Mapping[str, Value]

    @property
    def json(self) -> str:
        """On one line."""
        return json.dumps({"name": self.name, "arguments": self.arguments}, ensure_ascii=False)

    @property
    def xml(self) -> str:
        """As Qwen3.5 calls functions."""
        parameters = "".join(
            f"<parameter={name}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>\n"
            for name, value in self.arguments.items()
        )
        return f"<function={self.name}>\n{parameters}</function>"


def _alone(action: Action) -> tuple[Action, ...]:
    return (action,)


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
    words: Mapping[str, str] = field(default_factory=dict)
    """Arguments that have another name here than in Millrace's own tools, by that."""
    implies: Mapping[str, Value] = field(default_factory=dict)
    """Arguments that tell it from another action of the same name."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a system prompt says of an action space."""

    name: str
    """Of the one function whose argument `action` says what is done; empty: every action is a function."""
    actions: Mapping[ActionKind, ToolAction]
    definition: str
    """JSON, a function a line."""
    example: str
    """A call as the model is to write it, with letters for numbers."""
    directions: tuple[str, ...] = ("up", "down")
    """Of a scroll."""
    types_at_focus: bool = False
    """Text may go to the field with the focus, and without Enter behind it."""
    presses_enter: bool = True
    """Behind a text, unless a call says otherwise."""
    scroll_amount: float | None = None
    """Share of the window that a scroll goes which does not say how far; None: each goes a whole window."""
    wait_s: float = 2.0
    """Of a wait that does not say how long."""
    ends_without_answer: bool = False
    """An answer may be empty."""
    first_tab: int = 1
    """Number of the first tab."""
    taken_apart: Callable[[Action], tuple[Action, ...]] = _alone
    """An action as the actions that the tool has for it, for demonstrations."""
    most_calls: int = 1
    """So many at most."""

    def kind_of(self, name: str) -> ActionKind | None:
        """Of an action by the name that the tool gives it."""
        return next((kind for kind, action in self.actions.items() if action.name == name), None)

    def call(self, action: ToolAction, arguments: Mapping[str, Value]) -> ToolCall:
        """With the arguments' own names."""
        if not self.name:
            return ToolCall(action.name, arguments)
        return ToolCall(self.name, {"action": action.name, **arguments})


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
