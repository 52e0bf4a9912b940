"""Counts what matching a regular expression takes, in looks at a character or a place: a backtracking matcher of its own.

It finds what `re` finds, which `steps` compares, in the way of a backtracking engine without shortcuts.
"""

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

Then = Callable[[int], int | None]
_CATEGORIES: Final = {
    ops.CATEGORY_DIGIT: r"\d", ops.CATEGORY_NOT_DIGIT: r"\D", ops.CATEGORY_SPACE: r"\s", ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w", ops.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
_ONE_CHARACTER: Final = (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN)


def steps(pattern: re.Pattern[str], text: str) -> int:
    """Of finding every match in the text."""
    matcher, found, at = _Matcher(pattern, text), list[tuple[int, int]](), 0
    with _deep():
        while at <= len(text):
            begin = at
            while begin <= len(text) and (end := matcher.match(matcher.tree, begin, _stop)) is None:
                begin += 1
            if begin > len(text):
                break
            assert end is not None
            found.append((begin, end))
            at = end + (end == begin)
    assert found == [match.span() for match in pattern.finditer(text)], f"{pattern.pattern!r} in {text!r}"
    return matcher.num_steps


def _stop(at: int) -> int:
    return at


@contextmanager
def _deep() -> Any:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@dataclass
class _Matcher:
    pattern: re.Pattern[str]
    text: str
    num_steps: int = 0

    def __post_init__(self) -> None:
        self.tree: Any = parser.parse(self.pattern.pattern, self.pattern.flags)

    def match(self, nodes: Sequence[Any], at: int, then: Then) -> int | None:
        """Where the whole match ends; None when there is none from here."""
        self.num_steps += 1
        if not nodes:
            return then(at)
        (op, value), rest = nodes[0], nodes[1:]

        def on(end: int) -> int | None:
            return self.match(rest, end, then)

        if op in _ONE_CHARACTER:
            return on(at + 1) if self._is(op, value, at) else None
        if op is ops.SUBPATTERN:
            return self.match(value[3], at, on)
        if op is ops.BRANCH:
            return next((end for choice in value[1] if (end := self.match(choice, at, on)) is not None), None)
        if op is ops.ATOMIC_GROUP:
            end = self.match(value, at, _stop)
            return None if end is None else on(end)
        if op is ops.AT:
            return on(at) if self._stands(value, at) else None
        if op in (ops.ASSERT, ops.ASSERT_NOT):
            direction, inner = value
            begin = at if direction > 0 else at - inner.getwidth()[0]
            holds = begin >= 0 and self.match(inner, begin, _stop) is not None
            return on(at) if holds is (op is ops.ASSERT) else None
        if op is ops.POSSESSIVE_REPEAT:
            return self._possessive(value, at, on)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            return self._repeat(value, at, on, 0, -1, is_lazy=op is ops.MIN_REPEAT)
        raise NotImplementedError(op)

    def _possessive(self, value: Any, at: int, on: Then) -> int | None:
        low, high, inner = value
        count = 0
        while count < high and (end := self.match(inner, at, _stop)) is not None and end > at:
            at, count = end, count + 1
        return on(at) if count >= low else None

    def _repeat(self, value: Any, at: int, on: Then, count: int, before: int, *, is_lazy: bool) -> int | None:
        low, high, inner = value

        def more() -> int | None:
            if count >= high or at == before:
                return None
            return self.match(inner, at, lambda end: self._repeat(value, end, on, count + 1, at, is_lazy=is_lazy))

        def enough() -> int | None:
            return on(at) if count >= low else None

        first, second = (enough, more) if is_lazy else (more, enough)
        end = first()
        return second() if end is None else end

    def _is(self, op: Any, value: Any, at: int) -> bool:
        if at >= len(self.text):
            return False
        letter = self.text[at]
        if op is ops.ANY:
            return letter != "\n" or bool(self.pattern.flags & re.DOTALL)
        if op is ops.IN:
            negated = value[0][0] is ops.NEGATE
            return any(self._in(kind, part, letter) for kind, part in value if kind is not ops.NEGATE) is not negated
        return self._same(value, letter) is bool(op is ops.LITERAL)

    def _in(self, kind: Any, part: Any, letter: str) -> bool:
        if kind is ops.LITERAL:
            return self._same(part, letter)
        if kind is ops.RANGE:
            return bool(part[0] <= ord(letter) <= part[1])
        return re.match(_CATEGORIES[part], letter) is not None

    def _same(self, code: int, letter: str) -> bool:
        other = chr(code)
        return letter.lower() == other.lower() if self.pattern.flags & re.IGNORECASE else letter == other

    def _stands(self, place: Any, at: int) -> bool:
        is_lines, text = bool(self.pattern.flags & re.MULTILINE), self.text
        if place in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            return at == 0 or (place is ops.AT_BEGINNING and is_lines and text[at - 1] == "\n")
        if place is ops.AT_END_STRING:
            return at == len(text)
        if place is ops.AT_END:
            return at == len(text) or (text[at] == "\n" and (is_lines or at == len(text) - 1))
        before, behind = (bool(re.match(r"\w", text[i])) if 0 <= i < len(text) else False for i in (at - 1, at))
        is_boundary = bool(place is ops.AT_BOUNDARY)
        return (before is not behind) is is_boundary
