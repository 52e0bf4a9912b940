"""Task files: one JSON object a line, in WebGym's format; every mistake is named by file, line and field, all at once.

Which fields there are says `trainer.feeding.task_fields`; others are left alone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas.errors import TaskFileError
from schemas.ids import TaskId
from schemas.messages import Check, Fact
from trainer.feeding.problems import Problem, Problems, Unfit
from trainer.feeding.task_fields import read_fields
from trainer.feeding.task_values import decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One line of a task file."""

    task: TaskId
    instruction: str
    website: str
    """A URL with its scheme, or `suite:page?query`."""
    domain: str
    subdomain: str
    difficulty: int
    facts: tuple[Fact, ...]
    reference_answer: str | None
    attempt_level: int = 0
    distribution: str = ""
    """Whether it is of training's; empty: nobody has said so."""
    split: str = ""
    """As its publisher names it."""
    checks: tuple[Check, ...] = ()
    evaluation: str = ""
    """JSON; empty: there is none."""


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One line as it was read, right or wrong."""

    number: int
    fields: Mapping[str, object] = field(default_factory=dict)
    """Empty: it is no JSON object."""
    spec: TaskSpec | None = None
    """None: it cannot be read."""
    problems: tuple[Problem, ...] = ()
    """All that is wrong."""


def _ignored(raw: bytes) -> None:
    """What a line is as bytes."""


def read_tasks(file: Path) -> tuple[TaskSpec, ...]:
    """Reads a whole task file.

    Raises:
        TaskFileError: the file cannot be read or is empty, a line is not a JSON object, a field is missing or of the wrong
            kind, or a task id stands twice; says so of all lines.
    """
    return tuple(spec for _, spec in right_lines(file))


def right_lines(file: Path, see: Callable[[bytes], object] = _ignored) -> Iterator[tuple[TaskLine, TaskSpec]]:
    """Lines with what they say, one at a time, until one is wrong; behind the last, raises as `read_tasks`."""
    problems, is_empty = Problems(), True
    for line in task_lines(file, see):
        for problem in line.problems:
            problems.add(problem)
        if line.spec is not None and not problems:
            is_empty = False
            yield line, line.spec
    if problems:
        raise TaskFileError(str(problems))
    if is_empty:
        raise TaskFileError(f"{file} holds no task; write one JSON object a line")


def task_lines(file: Path, see: Callable[[bytes], object] = _ignored) -> Iterator[TaskLine]:
    """Every line that is not blank, one at a time. Raises `TaskFileError` where the file cannot be read.

    `see` is given every line as it stands in the file, before what it says is yielded.
    """
    seen: dict[TaskId, int] = {}
    for number, text in text_lines(file, see):
        line = _line(file, number, text)
        if line.spec is not None and (first := seen.setdefault(line.spec.task, number)) != number:
            what = f"{line.spec.task} stands on line {first} already; give every task an id of its own"
            line = TaskLine(number, line.fields, line.spec, (Problem(file, f"line {number}", "task_id", what),))
        yield line


def text_lines(file: Path, see: Callable[[bytes], object] = _ignored) -> Iterator[tuple[int, str | Unfit]]:
    """Lines with their numbers, blank ones left out; in place of one that is not UTF-8, what is wrong with it.

    Raises:
        TaskFileError: the file cannot be read.
    """
    try:
        # Lines end at line feeds only: other Unicode line ends may stand inside JSON texts.
        with file.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                see(raw)
                if not raw.strip():
                    continue
                try:
                    yield number, raw.removesuffix(b"\n").decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    yield number, Unfit(f"not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8")
    except OSError as error:
        raise TaskFileError(f"{file} cannot be read ({error.strerror}); put a task file there, or name another one") from error


def read_spec(fields: Mapping[str, object]) -> tuple[TaskSpec | None, list[tuple[str, str]]]:
    """What a line's fields say, or all that is wrong with them: field and sentence."""
    values, wrong = read_fields(fields)
    known: dict[str, Any] = values
    return (None if wrong else TaskSpec(**known)), wrong


def _line(file: Path, number: int, text: str | Unfit) -> TaskLine:
    place = f"line {number}"
    try:
        if isinstance(text, Unfit):
            raise text
        fields = decoded(text)
    except Unfit as error:
        return TaskLine(number, problems=(Problem(file, place, "", str(error)),))
    if not isinstance(fields, dict):
        what = "not a JSON object; write {...} with the fields of one task"
        return TaskLine(number, problems=(Problem(file, place, "", what),))
    spec, wrong = read_spec(fields)
    return TaskLine(number, fields, spec, tuple(Problem(file, place, name, what) for name, what in wrong))
