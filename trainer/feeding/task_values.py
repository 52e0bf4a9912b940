"""Values of a task file's fields, each brought to what the feeder works with. Pure; every reader raises `Unfit`."""

import re
import sys
from collections.abc import Callable, Iterator

import msgspec

from schemas.errors import ConfigurationError
from schemas.ids import TaskId, subject_token
from schemas.messages import Fact
from schemas.ranges import LARGEST
from schemas.text import MOST, is_valid, valid
from trainer.feeding.problems import Unfit, shown

_LONGEST_ID = 96
_ESCAPED = re.compile(r"\\[ubfr]")
"""What stands for a character that a text may not have."""
_LONGEST_EVALUATION = 50_000


def decoded(text: str) -> object:
    """JSON with valid texts all through. Raises `Unfit` for what is no JSON, or too long or deep for a task."""
    if len(text) > MOST:
        raise Unfit(f"{len(text):,} characters; write at most {MOST:,} for a task")
    try:
        value = msgspec.json.decode(text)
        # A text no longer than one may be, without what JSON spells by an escape, has only valid texts in it.
        return value if _ESCAPED.search(text) is None and is_valid(text) else worded(value)
    except RecursionError as error:
        raise Unfit("lists and objects stand too deep in each other; write a task with fewer levels") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise Unfit(f"not valid JSON ({error}); write one JSON object a line") from error


def worded(value: object) -> object:
    """With valid texts all through."""
    match value:
        case str():
            return valid(value)
        case dict():
            return {worded(key): worded(part) for key, part in value.items()}
        case list():
            return [worded(part) for part in value]
        case _:
            return value


def text_like(example: str) -> Callable[[object], str]:
    """Reads a text that is not blank."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise Unfit(f"{shown(value)} is not a text; write one such as {example!r}")
        return value.strip()

    return read


def name_like(example: str) -> Callable[[object], str]:
    """Reads a text that is not blank and that many tasks have: it is in memory once."""
    read = text_like(example)
    return lambda value: sys.intern(read(value))


def label_like(example: str) -> Callable[[object], str]:
    """Reads a text that may be blank and that many tasks have."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise Unfit(f"{shown(value)} is not a text; write one such as {example!r}")
        return sys.intern(value)

    return read


def whole_like(example: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise Unfit(f"{shown(value)} is not a whole number from 0 on; write one such as {example}")
        return value

    return read


def task_id(value: object) -> TaskId:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Unfit(f"{shown(value)} is neither a whole number nor a name; write one such as 17")
    try:
        token = subject_token(str(value), what="task")
    except ConfigurationError as error:
        raise Unfit(f"{shown(value)} cannot name a task; use letters, digits, '_' and '-'") from error
    if len(token) > _LONGEST_ID:
        raise Unfit(f"{shown(value)} has {len(token)} characters; use at most {_LONGEST_ID}")
    return TaskId(token)


def website(value: object) -> str:
    return normal_website(text_like("https://example.org")(value))


def answer(value: object) -> str | None:
    return None if value is None else _as_text(value)


def evaluation(value: object) -> str:
    """As JSON; empty: there is none."""
    if value is None:
        return ""
    encoded = msgspec.json.encode(mapping(value)).decode()
    if len(encoded) > _LONGEST_EVALUATION:
        raise Unfit(f"it has {len(encoded):,} characters as JSON; write at most {_LONGEST_EVALUATION:,}")
    return encoded


def mapping(value: object) -> object:
    if not isinstance(value, dict):
        raise Unfit(f"{shown(value)} is not an object; write {{...}}, or leave it out")
    return value


def anything(value: object) -> object:
    return value


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
            yield Fact(description=_as_text(description), difficulty=_fact_difficulty(rest.get("difficulty")), group=group)
        case _:
            yield Fact(description=_as_text(item), group=group)


def _fact_difficulty(value: object) -> int:
    return value if type(value) is int and abs(value) <= LARGEST else 1


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else str(value)
