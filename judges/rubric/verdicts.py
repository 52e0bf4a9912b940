"""Parses what a model answers: one JSON object, or nothing.

Invariant: a finding comes from exactly one complete object with exactly the two fields and a verdict word of the question;
no part of any other text is ever taken for a verdict.
"""

import json
import re
from collections.abc import Mapping
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
    body = unfenced(text)
    if not body:
        raise MalformedVerdict("the answer is empty")
    found = _object(body)
    if set(found) != {"reasoning", "verdict"}:
        raise MalformedVerdict(f"the object has the fields {_shown(sorted(found))} instead of reasoning and verdict")
    reasoning, verdict = found["reasoning"], found["verdict"]
    if not isinstance(reasoning, str):
        raise MalformedVerdict("the reasoning is no text")
    if not isinstance(verdict, str) or verdict not in (form.passed, form.failed):
        raise MalformedVerdict(f"the verdict is {_shown(verdict)} instead of {form.passed} or {form.failed}")
    return Finding(passed=verdict == form.passed, reasoning=shortened(cleaned(reasoning), _REASONING_LIMIT))


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


def _shown(value: object) -> str:
    return shortened(cleaned(repr(value)), _QUOTED)
