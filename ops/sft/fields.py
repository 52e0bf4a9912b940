"""Reads the fields of a record that nobody has checked; a sentence for whatever else stands there. Null counts as left out."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from ops.sft.findings import BadRecord, Findings

Fields = Mapping[str, object]


def fields_in(value: object, what: str) -> Fields:
    """Raises `BadRecord` unless it is an object with names."""
    if not isinstance(value, Mapping):
        raise BadRecord(f"{what} is {_kind(value)}: an object is expected")
    return value


def items_in(value: object, what: str) -> Sequence[object]:
    """Empty for null. Raises `BadRecord` unless it is a list."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise BadRecord(f"{what} is {_kind(value)}: a list is expected")
    return value


def text_in(value: object, what: str) -> str:
    """Empty for null. Raises `BadRecord` unless it is text."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRecord(f"{what} is {_kind(value)}: text is expected")
    return value


def parsed_in(value: object, what: str) -> object:
    """What text says in JSON; anything else as it is. Raises `BadRecord` for text that is none."""
    return decoded(value, what) if isinstance(value, str) else value


def decoded(data: bytes | str, what: str) -> object:
    """Raises `BadRecord` for what is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadRecord(f"{what} is not JSON: {error}") from error


def note_unread(fields: Fields, read: Collection[str], findings: Findings, prefix: str = "") -> None:
    findings.ignore(*(f"{prefix}{name}" for name, value in fields.items() if name not in read and value is not None))


def _kind(value: object) -> str:
    match value:
        case None:
            return "missing"
        case bool() | int() | float():
            return f"{value!r:.40}"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case Sequence():
            return "a list"
        case _:
            return f"a {type(value).__name__}"
