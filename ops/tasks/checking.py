"""Says all that is wrong with a task file of ours: errors, with which it is not to be played, and warnings.

Lines are read by the reader that the feeder uses. What concerns many lines alike is one warning, with their number.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import anyio.lowlevel

from browser_workers.actions import web_address
from ops.simulation.browser import NAME as SIMULATED
from ops.tasks.summary import Summary, has_answer
from schemas.errors import TaskFileError
from schemas.extensions import SUITES
from trainer.feeding.problems import SHOWN, Problem, Problems, more_than, shown
from trainer.feeding.task_fields import NAMES
from trainer.feeding.task_files import TaskLine, TaskSpec, task_lines

_LINES_BETWEEN_STOPS = 500


@dataclass(slots=True)
class Lines:
    """Lines of which one thing is true."""

    number: int = 0
    first: int = 0

    def add(self, line: int) -> None:
        self.number += 1
        self.first = self.first or line

    def __str__(self) -> str:
        return f"{self.number:,} {'task' if self.number == 1 else 'tasks'} (first: line {self.first})"


@dataclass
class Checked:
    """Grows by one line at a time."""

    file: Path
    suites: frozenset[str]
    errors: Problems = field(default_factory=Problems)
    summary: Summary = field(default_factory=Summary)
    unknown: dict[str, Lines] = field(default_factory=dict)
    """Fields that nobody reads."""
    unclassed: Lines = field(default_factory=Lines)
    """Of difficulty 0."""
    unanswered: Lines = field(default_factory=Lines)
    unjudged: Lines = field(default_factory=Lines)
    """On the web, with neither facts nor answer nor checks."""

    def add(self, line: TaskLine) -> None:
        for problem in line.problems:
            self.errors.add(problem)
        for name in line.fields.keys() - set(NAMES):
            self.unknown.setdefault(name, Lines()).add(line.number)
        if line.spec is not None:
            is_web = web_address(line.spec.website) != ""
            if self._opens(line.number, line.spec, is_web=is_web) and not line.problems:
                self._add_right(line.number, line.spec, is_web=is_web)

    def _opens(self, number: int, spec: TaskSpec, *, is_web: bool) -> bool:
        """Whether a browser worker can open its website."""
        suite, colon, _ = spec.website.partition(":")
        if (colon and suite in self.suites) or is_web:
            return True
        what = (
            f"{shown(spec.website)} is neither a http(s) address nor a page of a suite "
            f"({', '.join(sorted(self.suites - {SIMULATED}))}); write one, or name your own suite with --suites"
        )
        self.errors.add(Problem(self.file, f"line {number}", "website", what))
        return False

    def _add_right(self, number: int, spec: TaskSpec, *, is_web: bool) -> None:
        self.summary.add(spec)
        if spec.difficulty < 1:
            self.unclassed.add(number)
        if not has_answer(spec):
            self.unanswered.add(number)
        if is_web and not (spec.facts or spec.checks or spec.evaluation or has_answer(spec)):
            self.unjudged.add(number)

    def notes(self) -> tuple[str, ...]:
        """What is right, and worth knowing before a judge is chosen."""
        if not self.unjudged.number:
            return ()
        return (
            f"{self.unjudged} on the web with neither evaluator_reference, definite_answer nor checks: judges that ask a "
            "model (rubric_v1, the published evaluators) go by the instruction, others give no verdict",
        )

    def warnings(self) -> tuple[str, ...]:
        ordered = sorted(self.unknown.items(), key=lambda item: (-item[1].number, item[0]))
        found = [f"field {shown(name)} of {lines} is none that is read{_nearest(name)}" for name, lines in ordered[:SHOWN]]
        found += [f"{more} fields that are none" for more in more_than(len(ordered))]
        if self.unclassed.number:
            found.append(f"{self.unclassed} of difficulty 0: they get the steps of easy ones, and no class in reports")
        if 0 < self.unanswered.number < self.summary.num_tasks:
            found.append(f"{self.unanswered} without definite_answer, which others have: answer_* judges give them no verdict")
        return tuple(found)


async def check(file: Path, suites: Iterable[str] = ()) -> Checked:
    """`suites`: names of the user's own, as in `browser_config.suites`.

    Raises:
        TaskFileError: the file cannot be read, or holds no task at all.
    """
    own = {name.rpartition(":")[2] for name in suites}
    checked = Checked(file, frozenset({*SUITES.names, *own, SIMULATED}))
    async for line in _lines(file):
        checked.add(line)
    if not checked.summary.num_tasks and not checked.errors:
        raise TaskFileError(f"{file} holds no task; write one JSON object a line")
    return checked


async def _lines(file: Path) -> AsyncIterator[TaskLine]:
    """From time to time Ctrl-C may end it."""
    for number, line in enumerate(task_lines(file)):
        if number % _LINES_BETWEEN_STOPS == 0:
            await anyio.lowlevel.checkpoint()
        yield line


def _nearest(name: str) -> str:
    near = get_close_matches(name, NAMES, n=1)
    return f"; did you mean {near[0]}?" if near else ""
