"""Task files: one JSON object a line, in WebGym's format; every mistake is named by file, line and field.

Required: `task_id`, `task_name`, `domain`, `subdomain`, `website`, `difficulty`, `evaluator_reference`, `definite_answer`
(null allowed). Optional: `attempt_level` (0), `distribution` ("ood") and, beyond WebGym, `checks`. Others are left alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import msgspec

from schemas.errors import ConfigurationError, TaskFileError
from schemas.ids import TaskId, subject_token
from schemas.messages import Check, Fact
from schemas.text import MOST, valid
from trainer.feeding.task_checks import InvalidCheck, read_checks


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
    distribution: str = "ood"
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """One parsed line, with what an error message needs."""

    file: Path
    number: int
    fields: Mapping[str, object]

    def fail(self, field: str, problem: str) -> NoReturn:
        raise TaskFileError(f"{self.file}, line {self.number}, field {field!r}: {problem}")

    def required(self, field: str, what: str) -> object:
        if field not in self.fields:
            self.fail(field, f"it is missing; write {what}")
        return self.fields[field]

    def text(self, field: str, example: str) -> str:
        value = self.required(field, f"a text such as {example!r}")
        if not isinstance(value, str) or not value.strip():
            self.fail(field, f"{value!r} is not a text; write one such as {example!r}")
        return value.strip()

    def whole(self, field: str, value: object, example: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.fail(field, f"{value!r} is not a whole number from 0 on; write one such as {example}")
        return value


def read_tasks(file: Path) -> tuple[TaskSpec, ...]:
    """Reads a whole task file.

    Raises:
        TaskFileError: the file cannot be read or is empty, a line is not a JSON object, a field is missing or of the wrong
            kind, or a task id stands twice.
    """
    seen: dict[TaskId, int] = {}
    specs = []
    for line in _lines(file):
        spec = _spec(line)
        if spec.task in seen:
            line.fail("task_id", f"{spec.task} stands on line {seen[spec.task]} already; give every task an id of its own")
        seen[spec.task] = line.number
        specs.append(spec)
    if not specs:
        raise TaskFileError(f"{file} holds no task; write one JSON object a line")
    return tuple(specs)


def _lines(file: Path) -> Iterator[_Line]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise TaskFileError(f"{file} cannot be read ({error.strerror}); put a task file there, or name another one") from error
    except UnicodeDecodeError as error:
        raise TaskFileError(f"{file} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8") from error
    # Split at line feeds only: other Unicode line ends may stand inside JSON texts.
    for number, raw in enumerate(text.split("\n"), start=1):
        if not raw.strip():
            continue
        try:
            if len(raw) > MOST:
                raise TaskFileError(f"{file}, line {number}: {len(raw):,} characters; write at most {MOST:,} for a task")
            fields = _worded(msgspec.json.decode(raw))
        except msgspec.DecodeError as error:
            raise TaskFileError(f"{file}, line {number}: not valid JSON ({error}); write one JSON object a line") from error
        if not isinstance(fields, dict):
            raise TaskFileError(f"{file}, line {number}: not a JSON object; write {{...}} with the fields of one task")
        yield _Line(file, number, fields)


def _worded(value: object) -> object:
    """With valid texts all through."""
    match value:
        case str():
            return valid(value)
        case dict():
            return {_worded(key): _worded(part) for key, part in value.items()}
        case list():
            return [_worded(part) for part in value]
        case _:
            return value


def _spec(line: _Line) -> TaskSpec:
    answer = line.required("definite_answer", "the reference answer, or null")
    if answer is not None and not isinstance(answer, str):
        answer = _as_text(answer)
    distribution = line.fields.get("distribution", "ood")
    if not isinstance(distribution, str):
        line.fail("distribution", f"{distribution!r} is not a text; write one such as 'ood'")
    return TaskSpec(
        task=_task_id(line),
        instruction=line.text("task_name", "Find the opening hours"),
        website=normal_website(line.text("website", "https://example.org")),
        domain=line.text("domain", "shopping"),
        subdomain=line.text("subdomain", "books"),
        difficulty=line.whole("difficulty", line.required("difficulty", "a whole number such as 1"), 1),
        facts=normal_facts(line.required("evaluator_reference", "a text, a list of texts, or a list of fact groups")),
        reference_answer=answer,
        attempt_level=line.whole("attempt_level", line.fields.get("attempt_level", 0), 0),
        distribution=distribution,
        checks=_checks(line),
    )


def _checks(line: _Line) -> tuple[Check, ...]:
    try:
        return read_checks(line.fields.get("checks"))
    except InvalidCheck as error:
        line.fail("checks", str(error))


def _task_id(line: _Line) -> TaskId:
    value = line.required("task_id", "a whole number or a short name, unique in the file")
    if isinstance(value, bool) or not isinstance(value, int | str):
        line.fail("task_id", f"{value!r} is neither a whole number nor a name; write one such as 17")
    try:
        token = subject_token(str(value), what="task")
    except ConfigurationError:
        line.fail("task_id", f"{value!r} cannot name a task; use letters, digits, '_' and '-'")
    if len(token) > 96:
        line.fail("task_id", f"{value!r} has {len(token)} characters; use at most 96")
    return TaskId(token)


def normal_website(website: str) -> str:
    """Adds `https://` where there is no scheme; `suite:page?query` stays as it is.

    A colon behind a host name is a port (`example.org:8080`, `localhost:3000`): what follows it begins with a digit.
    """
    head, colon, rest = website.partition(":")
    if colon and rest.startswith("//"):
        return website
    is_suite = colon and head.replace("-", "_").isidentifier() and rest[:1].isalpha()
    return website if is_suite else f"https://{website}"


def normal_facts(reference: object) -> tuple[Fact, ...]:
    """Brings every form of `evaluator_reference` to a list of facts.

    Forms: a text; a list of texts; a list of `{description, difficulty}`; a list of groups `{id, description, facts}`, whose
    facts keep the group's description as context; anything else as its text. None and empty texts give no fact.
    """
    items = reference if isinstance(reference, list) else [reference]
    return tuple(fact for item in items for fact in _facts(item, group=""))


def _facts(item: object, *, group: str) -> Iterator[Fact]:
    match item:
        case None | "":
            return
        case {"facts": list(facts), **rest}:
            context = rest.get("description") or rest.get("id") or ""
            for fact in facts:
                yield from _facts(fact, group=_as_text(context))
        case {"description": description, **rest}:
            difficulty = rest.get("difficulty", 1)
            yield Fact(
                description=_as_text(description),
                difficulty=difficulty if isinstance(difficulty, int) else 1,
                group=group,
            )
        case _:
            yield Fact(description=_as_text(item), group=group)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else str(value)
