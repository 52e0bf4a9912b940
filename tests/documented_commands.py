"""The command lines that the documentation shows, as a reader would type them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_ENDS = {"|", "&", ";", "&&", ">"}


@dataclass(frozen=True)
class Line:
    """One command with its arguments."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def documented(program: str) -> list[Line]:
    """Every call of a program in the pages' shell blocks, in their order; what follows a pipe is left out."""
    return [
        Line(page.name, called)
        for page in PAGES
        for block in _BLOCK.findall(page.read_text())
        for line in block.replace("\\\n", " ").splitlines()
        if (called := _called(line, program))
    ]


def _called(line: str, program: str) -> tuple[str, ...]:
    words = shlex.split(line, comments=True)
    if not words or Path(words[0]).name != program:
        return ()
    end = next((place for place, word in enumerate(words) if word in _ENDS), len(words))
    return tuple(words[1:end])
