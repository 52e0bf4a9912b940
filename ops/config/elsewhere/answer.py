"""Defines what became of one key that somebody wrote, and of all of a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ops.config.elsewhere.row import Kind, Program


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one key."""

    key: str
    """Empty where it is not known: `value` is then what is written, if anything is."""
    value: object
    kind: Kind
    words: str = ""
    ours: Mapping[str, object] = field(default_factory=dict)
    """Our keys with their values; settings of the DeepSpeed file with `deepspeed.` before them."""
    is_default: bool = False
    """Nobody wrote it: it is what the program takes then."""


@dataclass(frozen=True, slots=True)
class Answers:
    program: Program
    all: tuple[Answer, ...]
    """In the order of the table: first what was written, then what the program takes where nothing is."""

    @property
    def written(self) -> tuple[Answer, ...]:
        return tuple(answer for answer in self.all if not answer.is_default)

    @property
    def unknown(self) -> tuple[Answer, ...]:
        return tuple(answer for answer in self.all if answer.kind is Kind.UNKNOWN)

    @property
    def values(self) -> dict[str, object]:
        """All of ours."""
        return {key: value for answer in self.all for key, value in answer.ours.items()}
