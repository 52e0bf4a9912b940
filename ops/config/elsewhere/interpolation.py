"""Resolves what YAML files say by reference, as OmegaConf writes it: `${a.b}`, `${.c}`, and the few functions that occur.

Pure: nothing is read from the environment, so what depends on it stays open.
"""

import operator
import re
from collections.abc import Callable, Mapping

from ops.config.elsewhere.written import Open, Unfit, number, truth

_INNERMOST = re.compile(r"\$\{([^${}]*)\}")
_MOST_DEPTH, _MOST_LENGTH, _SHOWN = 20, 10_000, 200
_OPERATIONS: Mapping[str, Callable[[float, float], float]] = {"subtract": operator.sub, "multiply": operator.mul}
_MISSING = object()


def resolved(values: Mapping[str, object]) -> dict[str, object]:
    """All values, with references followed; `Open` where one leads nowhere, round in a circle, or out of the file."""
    return {key: _value(value, key, values, 0) for key, value in values.items()}


def _value(value: object, key: str, values: Mapping[str, object], depth: int) -> object:
    if isinstance(value, list):
        inner = [_value(each, key, values, depth) for each in value]
        return Open(str(value)) if any(isinstance(each, Open) for each in inner) else inner
    if isinstance(value, str) and "${" in value:
        return _text(value, key, values, depth)
    return value


def _text(value: str, key: str, values: Mapping[str, object], depth: int) -> object:
    """The innermost references first, until none is left."""
    text = value
    while (found := _INNERMOST.search(text)) is not None and len(text) <= _MOST_LENGTH and depth <= _MOST_DEPTH:
        meant = _expression(found[1], key, values, depth)
        is_whole = found[0] == text
        if isinstance(meant, Open | dict) or meant is _MISSING or (isinstance(meant, list) and not is_whole):
            break
        if is_whole:
            return meant
        text = text[: found.start()] + ("null" if meant is None else str(meant)) + text[found.end() :]
    return Open(value[:_SHOWN]) if "${" in text else text


def _expression(said: str, key: str, values: Mapping[str, object], depth: int) -> object:
    function, colon, rest = said.partition(":")
    arguments = [part.strip() for part in rest.split(",")]
    if not colon:
        return _reference(said.strip(), key, values, depth)
    if function.strip() == "oc.select":
        found = _reference(arguments[0], key, values, depth)
        return found if found is not _MISSING else _scalar(arguments[1]) if len(arguments) > 1 else None
    return _computed(function.strip(), arguments)


def _computed(function: str, arguments: list[str]) -> object:
    """What RLinf's own functions come to; missing where there is no such one."""
    try:
        if function == "not":
            return not truth(arguments[0])
        if function in _OPERATIONS and len(arguments) == 2:
            found = _OPERATIONS[function](*map(number, arguments))
            return int(found) if found == int(found) else found
    except Unfit:
        pass
    return _MISSING


def _reference(name: str, key: str, values: Mapping[str, object], depth: int) -> object:
    dots = len(name) - len(name.lstrip("."))
    if dots:
        parts = key.split(".")[:-dots]
        name = ".".join([*parts, name[dots:]])
    if name not in values:
        return _MISSING
    return _value(values[name], name, values, depth + 1)


def _scalar(text: str) -> object:
    plain = text.strip("\"'")
    if plain in ("null", "None", ""):
        return None
    if plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    try:
        return int(plain)
    except ValueError:
        return plain
