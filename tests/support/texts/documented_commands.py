"""The command lines and scripts that the documentation shows, as a reader would type them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```$|^\| `(.*?)` \|", re.DOTALL | re.MULTILINE)
"""A block, also one that shows output; or the first cell of a table's row."""
_SCRIPT = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ENDS = {"|", "&", ";", "&&", ">"}


@dataclass(frozen=True)
class Line:
    """One command with its arguments."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def documented(program: str) -> list[Line]:
    """Every call of a program in the pages' shell blocks and tables, in their order; what follows a pipe is left out."""
    return [
        Line(page.name, called)
        for page in PAGES
        for block in _BLOCK.findall(page.read_text())
        for line in "".join(block).replace("\\\n", " ").splitlines()
        if (called := _called(line, program))
    ]


def scripts() -> list[tuple[str, str]]:
    """Page and text of every block of Python."""
    return [(page.name, script) for page in PAGES for script in _SCRIPT.findall(page.read_text())]


def _called(line: str, program: str) -> tuple[str, ...]:
    line = line.removeprefix("$ ")
    if not re.match(rf"(\S*/)?{program}\s", line):
        return ()
    words = shlex.split(line, comments=True)
    end = next((place for place, word in enumerate(words) if word in _ENDS), len(words))
    return tuple(words[1:end])
