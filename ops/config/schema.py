"""Plain mappings to the frozen dataclasses of `schemas`, with a sentence for every mistake a person can make.

Values start from the dataclasses' own defaults, so a file names only what it changes.
"""

import dataclasses
import difflib
import types
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from schemas.config import Config
from schemas.errors import ConfigurationError

_Component = TypeVar("_Component")
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    Any: "a value",
    str: "text (put quotes around digits, true, false and null)",
}

_MOST = 1e30
"""What messages take (`schemas.ranges.Amount`), also counted in other units or once for every step."""


def build_config(tree: Mapping[str, object]) -> Config:
    """Raises `ConfigurationError` for an unknown key, a wrong type, or a value out of its range."""
    config = _build(Config(), tree, "")
    bus = tree.get("bus_config")
    if isinstance(bus, Mapping) and "rubrics" in bus:
        return config
    return dataclasses.replace(
        config, bus_config=dataclasses.replace(config.bus_config, rubrics=(config.judge_config.rubric,))
    )


def known_keys() -> tuple[str, ...]:
    """Every key, in full: `policy_config.temperature`."""
    return tuple(_keys(Config(), ""))


def nearest_key(key: str) -> str:
    """The valid key that looks most like `key`, which may lack its group or name a wrong one."""
    return max(known_keys(), key=lambda known: _likeness(key, known))


def unknown_key(key: str) -> str:
    """The sentence for a key that there is not."""
    return _said_otherwise(key) or f"{key} is not a key of the configuration; did you mean {nearest_key(key)}?"


def _said_otherwise(key: str) -> str:
    from ops.config.elsewhere.programs import said_otherwise  # tables of other programs, for mistakes alone

    return said_otherwise(key)


def _likeness(key: str, known: str) -> float:
    whole = difflib.SequenceMatcher(None, key, known).ratio()
    last = difflib.SequenceMatcher(None, key.rpartition(".")[2], known.rpartition(".")[2]).ratio()
    return whole + 2 * last


def _keys(component: object, prefix: str) -> Iterator[str]:
    for field in dataclasses.fields(component):  # type: ignore[arg-type]
        value = getattr(component, field.name)
        if dataclasses.is_dataclass(value):
            yield from _keys(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name


def _build(default: _Component, tree: Mapping[str, object], prefix: str) -> _Component:
    hints = get_type_hints(type(default))
    changes: dict[str, Any] = {}
    for name, value in tree.items():
        key = prefix + str(name)
        if name not in hints:
            raise ConfigurationError(unknown_key(_first_leaf(key, value)))
        current = getattr(default, name)
        if not dataclasses.is_dataclass(current):
            kind = entry_kind(hints[name])
            changes[name] = _leaf(key, value, hints[name]) if kind is None else _entries(key, value, kind)
        elif isinstance(value, Mapping):
            changes[name] = _build(current, value, f"{key}.")
        else:
            example = next(_keys(current, f"{key}."))
            raise ConfigurationError(f"{key} is {value!r}: it is a group, write its keys, for example {example}")
    return dataclasses.replace(default, **changes)  # type: ignore[type-var]


def _first_leaf(key: str, value: object) -> str:
    """The first key below an unknown group that another program has; else the group."""
    if isinstance(value, Mapping):
        below = (_first_leaf(f"{key}.{name}", inner) for name, inner in value.items())
        return next((found for found in below if _said_otherwise(found)), key)
    return key


def entry_kind(wanted: Any) -> type[Any] | None:
    """The component that each entry of a table of components is."""
    kind = get_args(wanted)[-1] if get_origin(wanted) is dict else None
    return kind if isinstance(kind, type) and dataclasses.is_dataclass(kind) else None


def _entries(key: str, value: object, kind: type[_Component]) -> dict[str, _Component]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{key} is {value!r}: write a name for each entry, and its keys below it")
    return {str(name): _entry(f"{key}.{name}", tree, kind) for name, tree in value.items()}


def _entry(key: str, tree: object, kind: type[_Component]) -> _Component:
    hints = get_type_hints(kind)
    if not isinstance(tree, Mapping):
        raise ConfigurationError(f"{key} is {tree!r}: write its keys below it ({', '.join(hints)})")
    for name in tree:
        if name not in hints:
            nearest = difflib.get_close_matches(str(name), hints, n=1, cutoff=0.0)[0]
            raise ConfigurationError(f"{key}.{name} is not a key of the configuration; did you mean {nearest}?")
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and field.name not in tree:
            raise ConfigurationError(f"{key} has no {field.name}: write it")
    return kind(**{name: _leaf(f"{key}.{name}", value, hints[name]) for name, value in tree.items()})


def _leaf(key: str, value: object, wanted: Any) -> object:
    try:
        found = msgspec.convert(value, wanted, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{key} is {value!r}: write {words_of(wanted)}") from error
    if not _is_bounded(found):
        raise ConfigurationError(f"{key} is {value!r}: write a finite number, up to 1e30 for no bound")
    return found


def _is_bounded(value: object) -> bool:
    match value:
        case float():
            return abs(value) <= _MOST
        case list() | tuple():
            return all(map(_is_bounded, value))
        case dict():
            return all(map(_is_bounded, value.values()))
        case _:
            return True


def words_of(wanted: Any) -> str:
    if get_origin(wanted) is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(wanted))
    if get_origin(wanted) in (Union, types.UnionType):
        return " or ".join(words_of(choice) for choice in get_args(wanted))
    if get_origin(wanted) is tuple:
        return "a list"
    if get_origin(wanted) is dict:
        return f"names, each with {words_of(get_args(wanted)[-1])}"
    plain = getattr(wanted, "__supertype__", wanted)
    return _WORDS.get(plain, "null" if plain is type(None) else str(plain))
