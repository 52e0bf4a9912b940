"""Declares what becomes of each published field of a benchmark's tasks, and does it. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.feeding.problems import Unfit
from trainer.feeding.task_values import anything

_FACTS = "evaluator_reference"


@dataclass(frozen=True, slots=True)
class Mapped:
    """A published field that becomes one of a task file's."""

    field: str
    """As published; of an object inside: `object.name`."""
    to: str
    by: Callable[[Any], object] = anything
    """Raises `Unfit`; None: the published value says nothing. What several fields say about facts is put together."""
    how: str = ""
    """In words, where it is not taken as it is."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A published field that stays as it is, in the line's `metadata`."""

    field: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Unused:
    """A published field that is left out."""

    field: str
    why: str


Rule = Mapped | Kept | Unused


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    name: str
    published: str
    """Where, and as which files."""
    licence: str
    """Of the tasks, as their publisher states it."""
    rules: tuple[Rule, ...]
    """Of all fields that are published; one may have several."""
    constants: Mapping[str, object]
    """What a line has where no published field says otherwise."""
    splits: Mapping[str, str] = field(default_factory=dict)
    """By a file's name without its ending, in small letters."""
    split: str = ""
    """Of other files."""
    evaluation: Callable[[Mapping[str, object], Mapping[str, str]], object] | None = None
    """What its own evaluators go by, of a published record and the addresses of its sites by name. Raises `Unfit`."""
    notes: tuple[str, ...] = ()
    """What else has to be known."""

    def split_of(self, file: Path) -> str:
        return self.splits.get(file.stem.lower(), self.split)

    def published_name(self, name: str, record: Mapping[str, object]) -> str:
        """The published field that one of a task file's comes from: one that the record has, where there are several."""
        fields = [rule.field for rule in self.rules if isinstance(rule, Mapped) and rule.to == name]
        return next((field for field in fields if field.partition(".")[0] in record), fields[0] if fields else name)


@dataclass
class Mapper:
    """Makes lines of published records, and counts what became of which field."""

    benchmark: Benchmark
    counts: Counter[str] = field(default_factory=Counter)
    """Records that have the field."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Fields that no rule is of, kept in `metadata`."""

    def line(self, record: Mapping[str, object], split: str) -> tuple[dict[str, object], list[tuple[str, str]]]:
        """A line of a task file, and what is wrong: published field and sentence."""
        line: dict[str, object] = {"split": split, **self.benchmark.constants}
        metadata: dict[str, object] = {}
        wrong = []
        flat = dict(self._flat(record))
        for rule in self.benchmark.rules:
            if rule.field not in flat:
                continue
            value = flat[rule.field]
            match rule:
                case Mapped():
                    try:
                        _put(line, metadata, rule, value)
                    except Unfit as error:
                        wrong.append((rule.field, str(error)))
                case Kept():
                    metadata[rule.field] = value
        for name in flat.keys() - self._known:
            metadata[name] = flat[name]
            self.unknown[name] += 1
        self.counts.update(flat.keys() & self._known)
        if metadata:
            line["metadata"] = metadata
        return line, wrong

    def _flat(self, record: Mapping[str, object]) -> Iterator[tuple[str, object]]:
        for name, value in record.items():
            if name in self._opened and isinstance(value, Mapping):
                yield from ((f"{name}.{inner}", part) for inner, part in value.items())
            else:
                yield name, value

    def __post_init__(self) -> None:
        self._known = {rule.field for rule in self.benchmark.rules}
        self._opened = {name.partition(".")[0] for name in self._known if "." in name}


def _put(line: dict[str, object], metadata: dict[str, object], rule: Mapped, value: object) -> None:
    """Raises `Unfit`."""
    made = rule.by(value)
    if made is None:
        return
    known = line.get(rule.to)
    if rule.to == _FACTS and isinstance(known, list):
        line[_FACTS] = [*known, *(made if isinstance(made, list) else [made])]
        return
    line[rule.to] = made
    if rule.to == "task_id" and str(made) != str(value):
        metadata["published_id"] = value
