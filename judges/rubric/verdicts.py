"""Parses what a model answers: one JSON object, or nothing.

Invariant: a finding comes from exactly one complete object with exactly the two fields and a verdict word of the question;
no part of any other text is ever taken for a verdict.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from judges.rubric.asking import Finding, MalformedVerdict
from judges.rubric.untrusted import cleaned, shortened

_THOUGHT = "<think>", "</think>"
_FENCED = re.compile(r"\A```json[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL)
_REASONING_LIMIT = 2_000
"""Characters of a reasoning that are kept, so that a judgement with many stages is still a message."""
_QUOTED = 80


@dataclass(frozen=True, slots=True)
class VerdictForm:
    """The two words that a question may be answered with."""

    name: str
    passed: str
    failed: str

    @property
    def schema(self) -> Mapping[str, object]:
        """The reasoning comes first, so that the verdict follows from it."""
        return {
            "type": "object",
            "properties": {"reasoning": {"type": "string"}, "verdict": {"type": "string", "enum": [self.passed, self.failed]}},
            "required": ["reasoning", "verdict"],
            "additionalProperties": False,
        }


CRITERION = VerdictForm("criterion_verdict", "SUCCESS", "FAILURE")
KEYPOINT = VerdictForm("keypoint_verdict", "NEEDED", "NOT_NEEDED")
BLOCKING = VerdictForm("blocking_verdict", "BLOCKED", "NOT_BLOCKED")


def read_verdict(form: VerdictForm, text: str) -> Finding:
    """The verdict that `text` is. White space, one ```json fence around it and one block of thought before it are tolerated.

    Raises:
        MalformedVerdict: it is anything else; says what.
    """
    found = read_object(text, ("reasoning", "verdict"))
    passed = chosen(found, "verdict", (form.passed, form.failed)) == form.passed
    return Finding(passed=passed, reasoning=worded(found, "reasoning"))


def read_object(text: str, fields: Sequence[str]) -> dict[str, object]:
    """The object that `text` is, with exactly these fields; tolerated is what `read_verdict` tolerates.

    Raises:
        MalformedVerdict: it is anything else; says what.
    """
    body = unfenced(text)
    if not body:
        raise MalformedVerdict("the answer is empty")
    found = _object(body)
    if set(found) != set(fields):
        raise MalformedVerdict(f"the object has the fields {shown(sorted(found))} instead of {' and '.join(fields)}")
    return found


def worded(found: Mapping[str, object], field: str) -> str:
    """The text of a field, such as can be stored. Raises `MalformedVerdict` where it is none."""
    text = found[field]
    if not isinstance(text, str):
        raise MalformedVerdict(f"the {field} is no text")
    return shortened(cleaned(text), _REASONING_LIMIT)


def chosen(found: Mapping[str, object], field: str, words: Sequence[str]) -> str:
    """Which of the words a field is. Raises `MalformedVerdict` where it is none of them."""
    word = found[field]
    if not isinstance(word, str) or word not in words:
        raise MalformedVerdict(f"the {field} is {shown(word)} instead of {' or '.join(words)}")
    return word


def unfenced(text: str) -> str:
    """Without the white space and the one fence that may stand around an object, and the one block of thought before it."""
    body = _unthought(text.strip())
    fenced = _FENCED.fullmatch(body)
    return fenced[1] if fenced else body


def _unthought(body: str) -> str:
    """Without the block that some models think in first.

    Where such a tag stands once more, as in a thought that quotes a page, the end of the block is not certain: it stays.
    """
    opening, closing = _THOUGHT
    if not body.startswith(opening) or body.count(opening) != 1 or body.count(closing) != 1:
        return body
    return body.partition(closing)[2].lstrip()


def _object(body: str) -> dict[str, object]:
    try:
        found = json.loads(body, object_pairs_hook=_without_duplicates, parse_constant=_refused)
    except RecursionError as error:
        raise MalformedVerdict("the answer is nested too deeply") from error
    except ValueError as error:
        raise MalformedVerdict(f"the answer is not one JSON object: {error}") from error
    if not isinstance(found, dict):
        raise MalformedVerdict(f"the answer is JSON, but a {type(found).__name__} instead of an object")
    return found


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedVerdict("a field stands twice in the object")
    return found


def _refused(constant: str) -> NoReturn:
    raise MalformedVerdict(f"{constant} is no JSON")


def shown(value: object) -> str:
    """In an error text."""
    return shortened(cleaned(repr(value)), _QUOTED)
