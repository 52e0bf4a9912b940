"""Export formats, one a file: each takes episodes one by one and leaves files in a folder. What is written depends on them
alone.

    @exporter("lengths")
    class Lengths:
        def __init__(self, options: FormatOptions) -> None:
            self._file = (options.folder / "lengths.txt").open("w")

        def add(self, played: Played) -> int:
            self._file.write(f"{len(played.steps)}\\n")
            return len(played.steps)

        def close(self) -> None:
            self._file.close()
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from ops.archive.exports.played import Played, PlayedStep
from schemas.context_config import ContextConfig
from schemas.extensions import EXPORTERS
from schemas.model_config import ModelConfig


class Format(Protocol):
    """Writes one export. The same episodes in the same order give the same files."""

    def add(self, played: Played) -> int:
        """Returns how many steps were written."""
        ...

    def close(self) -> None:
        """Writes what is not in a file yet."""
        ...


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """What a format may need to know beside the episodes."""

    folder: Path
    """Empty, and the format's own."""
    context: ContextConfig
    model: ModelConfig
    """With `context`: how prompts were built in the run."""
    leave_out_unchanged: bool = False
    """Leave out steps after which the screenshot was the same."""

    def wants(self, step: PlayedStep) -> bool:
        return not (self.leave_out_unchanged and step.changed_nothing)


_Class = TypeVar("_Class", bound=Callable[[FormatOptions], Format])


def exporter(name: str) -> Callable[[_Class], _Class]:
    """Declares a format: a class, or a function, from options to a `Format`."""
    return lambda made: EXPORTERS.declare(name, made, None)
