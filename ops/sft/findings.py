"""What reading other people's files comes to: records that cannot be read, told all at once, and what is in them unread."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from schemas.errors import ConfigurationError
from schemas.text import visible


class BadRecord(ConfigurationError):
    """A record that no conversation can be made of; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Problem:
    file: Path
    record: int
    """From 1."""
    what: str

    def __str__(self) -> str:
        return f"{self.file}, record {self.record}: {visible(self.what)}"


@dataclass
class Findings:
    """Grows while files are read."""

    problems: list[Problem] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    """What is not read or not used, and how often it was met."""
    before_each: Callable[[], None] = lambda: None
    """Called before every record, in the thread that reads; raises to stop the reading."""

    @contextmanager
    def record(self, file: Path, number: int) -> Iterator[None]:
        """Within it a `BadRecord` becomes a problem of this record, and the next one can be read."""
        self.before_each()
        try:
            yield
        except BadRecord as error:
            self.add(file, number, error)

    def add(self, file: Path, number: int, error: BadRecord) -> None:
        self.problems.append(Problem(file, number, str(error)))

    def ignore(self, *what: str) -> None:
        """Remembers what is passed over, by name."""
        self.unread.update(what)

    def told(self) -> list[str]:
        """A line for each bad record, and one for everything that is not read."""
        lines = [str(problem) for problem in self.problems]
        if self.unread:
            named = ", ".join(f"{visible(what)} ({count})" for what, count in sorted(self.unread.items()))
            lines.append(f"not read or not used, and how often it was met: {named}")
        return lines
