"""Forms of answer: the JSON schema that a model is asked for, and what is read from an object that keeps to it.

Invariant: what is read comes from exactly one complete object with exactly the form's fields, each of which means something;
no part of any other text is ever taken for an answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from judges.rubric.asking import Finding, MalformedVerdict
from judges.rubric.untrusted import cleaned, shortened
from judges.rubric.verdicts import chosen, read_object, shown, worded

Found = TypeVar("Found", bound=Finding)
Fields = Mapping[str, object]
_MOST_LISTED = 50
_LISTED_LIMIT = 500
"""Characters of one entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[Found]):
    name: str
    """Of the schema, for the endpoint."""
    properties: Mapping[str, Mapping[str, object]]
    """Every field, in the order in which a model is to write them: the reasoning before what follows from it."""
    finding: type[Found]
    reads: Callable[[Fields], Found]
    """Of the fields; raises `MalformedVerdict` where one means nothing."""

    @property
    def schema(self) -> Mapping[str, object]:
        return {
            "type": "object",
            "properties": {name: dict(each) for name, each in self.properties.items()},
            "required": list(self.properties),
            "additionalProperties": False,
        }

    @property
    def decides(self) -> str:
        """The field that holds the verdict: the last."""
        return list(self.properties)[-1]

    def read(self, text: str) -> Found:
        """Raises `MalformedVerdict`."""
        return self.reads(read_object(text, tuple(self.properties)))


@dataclass(frozen=True, slots=True)
class Listed(Finding):
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scored(Finding):
    scores: tuple[int, ...]


TEXT: Mapping[str, object] = {"type": "string"}
WHOLE: Mapping[str, object] = {"type": "integer"}
"""Without its range, which not every endpoint's schemas can say; whoever reads it holds it to that."""


def two_words(name: str, *, passed: str, failed: str, reasoning: str = "reasoning", verdict: str = "verdict") -> Form[Finding]:
    """One of two words, behind the reasoning for it."""

    def reads(fields: Fields) -> Finding:
        return Finding(chosen(fields, verdict, (passed, failed)) == passed, worded(fields, reasoning))

    words = {"type": "string", "enum": [passed, failed]}
    return Form(name=name, properties={reasoning: TEXT, verdict: words}, finding=Finding, reads=reads)


def listing(name: str, field: str, *, may_be_empty: bool) -> Form[Listed]:
    """A list of texts, behind the reasoning for it. Passed where there is an entry."""

    def reads(fields: Fields) -> Listed:
        items = texts(fields, field)
        if not items and not may_be_empty:
            raise MalformedVerdict(f"{field} is empty")
        return Listed(bool(items), worded(fields, "reasoning"), items)

    entries = {"type": "array", "items": TEXT}
    return Form(name=name, properties={"reasoning": TEXT, field: entries}, finding=Listed, reads=reads)


def score(name: str, *, lowest: int, highest: int, kept_from: int) -> Form[Scored]:
    """One whole number, behind the reasoning for it. Passed from `kept_from` on."""

    def reads(fields: Fields) -> Scored:
        found = whole(fields, "score", lowest, highest)
        return Scored(found >= kept_from, worded(fields, "reasoning"), (found,))

    return Form(name=name, properties={"reasoning": TEXT, "score": WHOLE}, finding=Scored, reads=reads)


def scores(name: str, number: int, *, highest: int) -> Form[Scored]:
    """So many whole numbers from 0 on, in order, behind the reasoning for them."""

    def reads(fields: Fields) -> Scored:
        given = fields["scores"]
        if not isinstance(given, list) or len(given) != number:
            raise MalformedVerdict(f"the scores are {shown(given)} instead of {number} numbers")
        found = tuple(whole({"score": each}, "score", 0, highest) for each in given)
        return Scored(True, worded(fields, "reasoning"), found)

    entries = {"type": "array", "items": WHOLE}
    return Form(name=name, properties={"reasoning": TEXT, "scores": entries}, finding=Scored, reads=reads)


def whole(fields: Fields, field: str, lowest: int, highest: int) -> int:
    """Raises `MalformedVerdict`."""
    number = fields[field]
    if isinstance(number, bool) or not isinstance(number, int) or not lowest <= number <= highest:
        raise MalformedVerdict(f"the {field} is {shown(number)} instead of a whole number from {lowest} to {highest}")
    return number


def texts(fields: Fields, field: str) -> tuple[str, ...]:
    """Entries on one line each. Raises `MalformedVerdict`."""
    given = fields[field]
    if not isinstance(given, list) or len(given) > _MOST_LISTED:
        raise MalformedVerdict(f"{field} is {shown(given)} instead of a list of at most {_MOST_LISTED} texts")
    return tuple(line(each, field) for each in given)


def line(entry: object, field: str) -> str:
    """One entry of a list, on one line. Raises `MalformedVerdict`."""
    found = " ".join(cleaned(entry).split()) if isinstance(entry, str) else ""
    if not found:
        raise MalformedVerdict(f"an entry of {field} is {shown(entry)} instead of a text")
    return shortened(found, _LISTED_LIMIT)
