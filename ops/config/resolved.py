"""A configuration with all that can be said of it: value, origin and default of every key, and what has no effect."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.config.agreement import require_agreement
from ops.config.key_docs import key_docs
from ops.config.loading import loaded
from ops.config.origins import DEFAULT, origins
from ops.config.translation import Note
from ops.config.webgym_keys import NOT_SET
from schemas.config import Config


@dataclass(frozen=True, slots=True)
class Value:
    key: str
    value: object
    """As YAML and JSON have it: no dataclass, no tuple."""
    origin: str
    is_changed: bool
    """Whether it differs from the default."""


@dataclass(frozen=True, slots=True)
class Resolved:
    name: str
    """The recipe or file."""
    values: dict[str, Value]
    """By key, in the order of the dataclasses."""
    notes: tuple[Note, ...]
    written: dict[str, str]
    """Origins of all that was written, keys without effect too."""


def resolve(recipe: str | Path, overrides: Sequence[str] = ()) -> Resolved:
    """Raises `ConfigurationError`."""
    found, said = loaded(recipe, overrides), origins(recipe, overrides)
    require_agreement(found.config)
    left_open = {note.key for note in found.notes if note.key in NOT_SET}
    values = {}
    for (key, value), (_, default) in zip(_leaves(found.config, ""), _leaves(Config(), ""), strict=True):
        origin = DEFAULT if key in left_open and value == default else said[key]
        values[key] = Value(key, value, origin, value != default)
    return Resolved(str(recipe), values, found.notes, said)


def _leaves(component: object, prefix: str) -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(component):  # type: ignore[arg-type]
        key, value = prefix + field.name, getattr(component, field.name)
        if key_docs()[key].is_group:
            yield from _leaves(value, f"{key}.")
        else:
            yield key, plain(value)


def plain(value: object) -> object:
    """Components as mappings, tuples as lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [plain(inner) for inner in value]
    return value
