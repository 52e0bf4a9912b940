"""Programmatic checks on how an episode ended, in the manner of WebArena's evaluators: answer, address, page content.

Pure: a task's checks, the answer and the final state go in, one verdict a check comes out. What cannot be looked at (the page
was gone) is a check that failed, with that reason; a check that makes no sense raises `JudgeError`.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import parse_qsl, unquote, urlsplit

from judges.programmatic.fuzzy import alike
from judges.programmatic.numbers import numbers_of
from judges.programmatic.patterns import found
from schemas.errors import JudgeError
from schemas.ids import TaskId
from schemas.messages import Check, CheckKind, CheckMatch, FinalState, StageVerdict

_QUOTES = ('""', "''", "“”", "‘’", "«»", "``")
_SHOWN = 120
"""Characters of a value that a verdict quotes."""
_ABSOLUTE = 1e-9
_RELATIVE = 1e-6
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NAMES = {CheckKind.ANSWER: "the answer", CheckKind.URL: "the address", CheckKind.PAGE: "the page's value"}
_VERBS = {
    CheckMatch.EQUALS: ("equals", "does not equal"),
    CheckMatch.CONTAINS: ("contains", "does not contain"),
    CheckMatch.NUMBER: ("has the number", "does not have the number"),
    CheckMatch.PATTERN: ("matches", "does not match"),
    CheckMatch.FUZZY: ("says the same as", "does not say the same as"),
}


@contextmanager
def naming(task: TaskId) -> Iterator[None]:
    """Puts the task's name in front of what is wrong with its checks."""
    try:
        yield
    except JudgeError as error:
        raise type(error)(f"task {task}: {error}") from error


def evaluate(checks: Sequence[Check], answer: str, final_state: FinalState | None) -> tuple[StageVerdict, ...]:
    """One verdict a check, in their order.

    Raises:
        JudgeError: an expected value is no number or no pattern although its check needs one, or a pattern takes too long.
    """
    values = _values(checks, answer, final_state)
    return tuple(
        _verdict(f"check_{index}", check, value) for index, (check, value) in enumerate(zip(checks, values, strict=True), 1)
    )


def _values(checks: Sequence[Check], answer: str, final_state: FinalState | None) -> Iterator[str | None]:
    """What each check looks at; None where it cannot be had."""
    read = iter(final_state.values if final_state is not None else ())
    for check in checks:
        match check.kind:
            case CheckKind.ANSWER:
                yield answer
            case CheckKind.URL:
                yield None if final_state is None else final_state.url
            case CheckKind.PAGE:
                yield next(read, None)


def _verdict(stage: str, check: Check, value: str | None) -> StageVerdict:
    name = _NAMES[check.kind]
    if value is None:
        return StageVerdict(
            stage, passed=False, reasoning=f"{name} could not be read: the page was gone when the episode ended"
        )
    if not value.strip():
        missing = "there was no answer" if check.kind is CheckKind.ANSWER else f"{name} is empty"
        return StageVerdict(stage, passed=False, reasoning=missing)
    passed = any(matches(check.kind, check.match, value, expected) for expected in check.expected)
    expected = " or ".join(_quoted(text) for text in check.expected)
    return StageVerdict(
        stage, passed=passed, reasoning=f"{name} {_quoted(value)} {_VERBS[check.match][not passed]} {expected}"
    )


def matches(kind: CheckKind, match: CheckMatch, value: str, expected: str) -> bool:
    """Whether one value is what was expected. Case and runs of white space never count.

    Raises:
        JudgeError: `expected` is no number or no pattern although `match` needs one, or the pattern takes too long.
        ConfigurationError: `match` is fuzzy, and what it needs is not installed.
    """
    match match:
        case CheckMatch.EQUALS:
            return _equal(kind, value, expected)
        case CheckMatch.CONTAINS:
            return _contains(_plain(value), _plain(expected))
        case CheckMatch.NUMBER:
            return _same_number(value, expected)
        case CheckMatch.PATTERN:
            return found(expected, " ".join(unicodedata.normalize("NFKC", value).split()))
        case CheckMatch.FUZZY:
            return alike(value, expected)


def _equal(kind: CheckKind, value: str, expected: str) -> bool:
    match kind:
        case CheckKind.URL:
            return _same_address(value, expected)
        case CheckKind.ANSWER:
            return _bare(value) == _bare(expected)
        case CheckKind.PAGE:
            return _plain(value) == _plain(expected)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _bare(text: str) -> str:
    """Without quotes around it and a full stop behind it, as answers are written."""
    text = _plain(text).removesuffix(".")
    quoted = any(len(text) > 1 and text[0] == pair[0] and text[-1] == pair[1] for pair in _QUOTES)
    return text[1:-1].strip().removesuffix(".") if quoted else text


def _contains(value: str, expected: str) -> bool:
    """As whole words: `5` is not in `15`, `oak` is not in `soaked`."""
    before = r"(?<!\w)" if expected[:1].isalnum() else ""
    after = r"(?!\w)" if expected[-1:].isalnum() else ""
    return bool(expected) and re.search(before + re.escape(expected) + after, value) is not None


def _same_number(value: str, expected: str) -> bool:
    try:
        wanted = float(expected)
    except ValueError as error:
        raise JudgeError(f"a check expects the number {_quoted(expected)}, which is none: correct the task") from error
    numbers = numbers_of(value)
    return bool(numbers) and math.isclose(numbers[0], wanted, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)


def _same_address(url: str, expected: str) -> bool:
    """Neither the order of the query, a slash at the end nor a default port counts; a fragment only where one is expected.

    An expected address that begins with `/` says nothing about the host.
    """
    is_path = expected.startswith("/")
    given, wanted = _address(url, with_fragment="#" in expected), _address(expected, with_fragment=True)
    return given[is_path:] == wanted[is_path:]


def _address(url: str, *, with_fragment: bool) -> tuple[object, ...]:
    """Host, path, query and fragment in comparable form."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return (url,)
    host = (parts.scheme.lower(), parts.hostname or "", port or _DEFAULT_PORTS.get(parts.scheme.lower()))
    query = sorted(parse_qsl(parts.query.casefold(), keep_blank_values=True))
    return host, unquote(parts.path).casefold().rstrip("/"), query, parts.fragment.casefold() if with_fragment else ""


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return f'"{text[:_SHOWN]}{"…" if len(text) > _SHOWN else ""}"'
