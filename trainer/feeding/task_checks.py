"""The `checks` of a task file's line: a list of `{kind, expected, match, expression}`; a mistake says what to write."""

import math
from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

import regex

from schemas.messages import Check, CheckKind, CheckMatch
from trainer.feeding.problems import Unfit, shown

E = TypeVar("E", bound=Enum)
_KEYS = ("kind", "expected", "match", "expression")


class InvalidCheck(Unfit):
    """Says which check is wrong and what to write instead."""


def read_checks(value: object) -> tuple[Check, ...]:
    """Raises `InvalidCheck`."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidCheck(f'{shown(value)} is not a list; write one such as [{{"kind": "answer", "expected": "42"}}]')
    checks, wrong = [], []
    for number, item in enumerate(value, start=1):
        try:
            checks.append(_check(item))
        except InvalidCheck as error:
            wrong.append(f"check {number}: {error}")
    if wrong:
        raise InvalidCheck("; ".join(wrong))
    return tuple(checks)


def _check(item: object) -> Check:
    if not isinstance(item, dict):
        raise InvalidCheck(f'{shown(item)} is not an object; write one such as {{"kind": "answer", "expected": "42"}}')
    if unknown := [key for key in item if key not in _KEYS]:
        raise InvalidCheck(f"unknown key {shown(unknown[0])}; write only {', '.join(_KEYS)}")
    kind = _one_of(CheckKind, item.get("kind"), "kind")
    match = _one_of(CheckMatch, item.get("match", CheckMatch.EQUALS.value), "match")
    if kind is CheckKind.URL and match is CheckMatch.FUZZY:
        raise InvalidCheck("match 'fuzzy' is for words; write equals, contains or pattern for an address")
    check = Check(kind=kind, expected=_expected(item), match=match, expression=_expression(item, kind))
    for text in check.expected:
        _require_meaning(match, text)
    return check


def _one_of(values: type[E], value: object, key: str) -> E:
    names = [each.value for each in values]
    if value not in names:
        raise InvalidCheck(f"{key} {shown(value)} is unknown; write one of {', '.join(names)}")
    return values(value)


def _expected(item: Mapping[str, object]) -> tuple[str, ...]:
    value = item.get("expected")
    texts = value if isinstance(value, list) else [value]
    if not texts:
        raise InvalidCheck("expected is an empty list; write at least one value")
    return tuple(_text(text) for text in texts)


def _text(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise InvalidCheck(f"expected holds {shown(value)}; write a text or a number that is not empty, or a list of them")
    return value


def _expression(item: Mapping[str, object], kind: CheckKind) -> str:
    expression = item.get("expression", "")
    if kind is not CheckKind.PAGE and not expression:
        return ""
    if kind is not CheckKind.PAGE:
        raise InvalidCheck(f"an expression is of no use to a check of kind {kind.value!r}; leave it out, or write kind 'page'")
    if not isinstance(expression, str) or not expression.strip():
        raise InvalidCheck("a check of kind 'page' needs an expression; write JavaScript such as 'document.title'")
    return expression


def _require_meaning(match: CheckMatch, text: str) -> None:
    """Raises `InvalidCheck` for what could never be found."""
    if match is CheckMatch.NUMBER:
        try:
            finite = math.isfinite(float(text))
        except ValueError:
            finite = False
        if not finite:
            raise InvalidCheck(f"expected {shown(text)} is not a number; write one such as 12.5")
    if match is CheckMatch.FUZZY and not any(letter.isalnum() for letter in text):
        raise InvalidCheck(f"expected {shown(text)} holds neither a word nor a number; write equals instead of fuzzy")
    if match is CheckMatch.PATTERN:
        try:
            regex.compile(text)
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise InvalidCheck(
                f"expected {shown(text)} is not a pattern ({error}); write a regular expression of Python's"
            ) from None
