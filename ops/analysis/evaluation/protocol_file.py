"""Reads a protocol, strictly: every mistake in the file is said at once, by key, with what to write instead."""

import difflib
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import yaml

from ops.analysis.evaluation.pins import pin_of
from ops.analysis.evaluation.protocol import Protocol
from ops.config.protocols import PROTOCOLS, protocol_names
from ops.config.schema import known_keys, unknown_key, words_of
from schemas.errors import ConfigurationError
from trainer.feeding.problems import shown

_LARGEST = 2**53 - 1
_WORDS_ABOUT = ("about", "differs")


def find_protocol(word: str) -> Protocol:
    """A committed one by its name, or a file. Raises `ConfigurationError`."""
    return read_protocol(PROTOCOLS / f"{word}.yaml" if word in protocol_names() else Path(word))


def read_protocol(path: Path) -> Protocol:
    """Raises `ConfigurationError` that names the file, and every key in it that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
        has_aliases = any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader))
        content = None if has_aliases else yaml.safe_load(text)
    except OSError as error:
        named = ", ".join(protocol_names())
        raise ConfigurationError(
            f"the protocol {path} cannot be read ({error.strerror}): write the path of a .yaml file, or one of {named}"
        ) from error
    except RecursionError as error:
        raise ConfigurationError(f"{path}: lists and keys stand too deep in each other: write fewer levels") from error
    except (yaml.YAMLError, ValueError) as error:
        # Of a date or number that there is not, YAML's reader raises Python's own error.
        raise ConfigurationError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    if has_aliases:
        raise ConfigurationError(f"{path} has an alias (*name): write what it stands for in its place")
    reading = _Reading()
    protocol = reading.component(Protocol, content, "")
    if isinstance(protocol, Protocol):
        reading.wrong += _wrong_configuration(protocol.configuration)
    if reading.wrong or not isinstance(protocol, Protocol):
        raise ConfigurationError(f"{path}: {'; '.join(reading.wrong)}")
    return protocol


def keys() -> tuple[str, ...]:
    """Every key of a protocol, in full: `sampling.temperature`."""
    return tuple(_keys(Protocol, ""))


def _keys(kind: Any, prefix: str) -> Iterator[str]:
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            yield from _keys(hint, f"{prefix}{name}.")
        else:
            yield prefix + name


@dataclass
class _Reading:
    wrong: list[str] = field(default_factory=list)
    """A clause each."""

    def component(self, kind: Any, tree: object, prefix: str) -> object:
        """An instance; None where there can be none."""
        hints, before = get_type_hints(kind), len(self.wrong)
        if not isinstance(tree, Mapping):
            what = f"{prefix.rstrip('.')} is {shown(tree)}" if prefix else "it holds no keys"
            self.wrong.append(f"{what}: write keys with their values ({', '.join(hints)})")
            return None
        values = {}
        for name, value in tree.items():
            if name in hints:
                values[name] = self.value(hints[name], value, f"{prefix}{name}")
            else:
                self.wrong.append(_unknown(f"{prefix}{name}", prefix, tuple(hints)))
        for each in fields(kind):
            if each.default is MISSING and each.default_factory is MISSING and each.name not in tree:
                self.wrong.append(f"{prefix}{each.name} is missing: write it")
        if len(self.wrong) > before:
            return None
        try:
            return kind(**values)
        except ConfigurationError as error:
            self.wrong.append(str(error))
            return None

    def value(self, hint: Any, value: object, key: str) -> object:
        choices = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        below = next((choice for choice in choices if is_dataclass(choice)), None)
        if below is not None and (len(choices) == 1 or isinstance(value, Mapping)):
            return self.component(below, value, f"{key}.")
        plain = tuple(choice for choice in choices if choice is not below)
        if key not in _WORDS_ABOUT and (wrong := _unusable(value)):
            self.wrong.append(f"{key} {wrong}")
            return None
        try:
            return msgspec.convert(value, Union[plain], strict=True)  # noqa: UP007 - of types that are known here alone
        except msgspec.ValidationError:
            meant = " or ".join(map(_words, choices))
            self.wrong.append(f"{key} is {shown(value)}: write {meant}")
            return None


def _unusable(value: object) -> str:
    """What is wrong with a value wherever it stands, in a clause; empty: nothing."""
    match value:
        case None | bool():
            return ""
        case int() | float():
            # No number that is not finite, none that a message cannot hold.
            return "" if abs(value) <= _LARGEST else f"has the number {shown(value)}: write one up to {_LARGEST}"
        case str():
            return f"has {shown(value)}: write the value itself, nothing is filled in" if "${" in value else ""
        case list():
            return next(filter(None, map(_unusable, value)), "")
        case dict():
            return next(filter(None, map(_unusable, (*value, *value.values()))), "")
        case _:
            return f"has {shown(value)}: write text (put quotes around it), a number, true, false, null, a list or keys"


def _words(hint: Any) -> str:
    if is_dataclass(hint):
        return f"keys below it ({', '.join(get_type_hints(hint))})"
    kind = get_args(hint)[0] if get_origin(hint) is tuple else None
    return f"a list, each {words_of(kind)}" if kind is not None else words_of(hint)


def _unknown(key: str, prefix: str, beside: tuple[str, ...]) -> str:
    """The nearest of those beside it; of all keys, where none of these is near."""
    name = key.rpartition(".")[2]
    near = difflib.get_close_matches(name, beside, n=1)
    other = max(keys(), key=lambda known: difflib.SequenceMatcher(None, name, known.rpartition(".")[2]).ratio())
    return f"{key} is not a key of a protocol; did you mean {prefix + near[0] if near else other}?"


def _wrong_configuration(configuration: Mapping[str, object]) -> Iterator[str]:
    for key in configuration:
        if key not in known_keys():
            yield f"configuration: {unknown_key(key)} Write keys in full, as in bus_config.url"
        elif pin := pin_of(key):
            yield f"configuration has {key}: write it as {pin}"
