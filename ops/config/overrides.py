"""Overrides that code writes: `key=value`, which mean their value whatever it holds. Pure."""

import re
from collections.abc import Mapping

import msgspec

_INTERPOLATION = re.compile(r"(\\*+)\$\{")
_BEFORE_QUOTE = re.compile(r"(\\*)('|\Z)")
_PLAIN = re.compile(r"[\w./-]+")


def as_overrides(values: Mapping[str, object]) -> tuple[str, ...]:
    """As `load_config` takes them. Values are those of YAML."""
    return tuple(f"{key}={_written(value)}" for key, value in values.items())


def literal(text: str) -> str:
    """As a configuration holds a text that stands for no other key's value."""
    return _INTERPOLATION.sub(r"\1\1\\${", text)


def quoted(text: str) -> str:
    """A text in quotes, as Hydra reads them: a backslash is one, unless a quote comes behind it."""
    escaped = _BEFORE_QUOTE.sub(lambda found: 2 * found[1] + found[2].replace("'", "\\'"), text)
    return f"'{escaped}'"


def _written(value: object) -> str:
    match value:
        case str():
            return quoted(literal(value))
        case list() | tuple():
            return f"[{','.join(map(_written, value))}]"
        case dict():
            return f"{{{','.join(f'{_name(str(name))}:{_written(inner)}' for name, inner in value.items())}}}"
        case _:
            return msgspec.json.encode(value).decode()


def _name(key: str) -> str:
    """Of an entry of a table: overrides take no quotes around one that needs none."""
    return key if _PLAIN.fullmatch(key) else quoted(key)
