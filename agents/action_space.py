"""Defines the actions a policy may take: how they name their targets, and the tool that offers them."""

from dataclasses import dataclass
from functools import cache
from typing import Literal, Self

from agents.tool import Tool
from schemas.context_config import ContextConfig
from schemas.extensions import VOCABULARIES

GRID = 1000.0
"""Points are given from 0 to this, whatever the screenshot's size."""


@dataclass(frozen=True, slots=True)
class ActionSpace:
    """The interaction mode and the vocabulary of a run."""

    mode: Literal["coordinates", "set_of_marks"] = "coordinates"
    actions: str = "standard"

    @classmethod
    def of(cls, context: ContextConfig) -> Self:
        return cls(mode=context.interaction_mode, actions=context.actions)

    @property
    def marked(self) -> bool:
        """Whether targets are numbers of marked elements instead of points."""
        return self.mode == "set_of_marks"

    @property
    def tool(self) -> Tool:
        """Raises `ConfigurationError` where there is no such vocabulary."""
        return _tool(self)


@cache
def _tool(space: ActionSpace) -> Tool:
    made: Tool = VOCABULARIES.find(space.actions).made(marked=space.marked)
    return made
