"""Vocabularies of actions, one a file: which actions a policy may take, and what the tool for them is called.

    @vocabulary("clicks_only")
    def clicks_only(*, marked: bool) -> Tool:
        ...

Whatever a call says is read leniently (`agents.reading`): a vocabulary gives names to actions, arguments have the names that
`agents.aliases` lists.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from agents.tool import Tool
from schemas.extensions import VOCABULARIES


class Vocabulary(Protocol):
    def __call__(self, *, marked: bool) -> Tool:
        """The tool for targets that are numbers of marked elements, or else points from 0 to 1000."""
        ...


_Vocabulary = TypeVar("_Vocabulary", bound=Vocabulary)


def vocabulary(name: str) -> Callable[[_Vocabulary], _Vocabulary]:
    """Declares a vocabulary, for `context_config.actions`."""
    return lambda made: VOCABULARIES.declare(name, made, None)
