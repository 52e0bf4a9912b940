"""Reads every key's documentation from its dataclass: the text under the field, its type in words, its unit, its default.

Read from the classes' own source, so that it cannot differ from it.
"""

import ast
import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ops.config.agreement import kind_of
from ops.config.schema import entry_kind, words_of
from schemas.config import Config

_UNITS = {
    "_ms": "milliseconds",
    "_s": "seconds",
    "_minutes": "minutes",
    "_hours": "hours",
    "_mb": "2**20 bytes",
    "_gb": "1e9 bytes",
    "_kb": "1,024 bytes",
    "_bytes": "bytes",
    "_tflops": "1e12 operations a second",
}


@dataclass(frozen=True, slots=True)
class KeyDoc:
    key: str
    kind: str
    """Its type in words, with its choices."""
    default: object
    text: str
    """What stands under the field, on one line; empty where nothing does."""
    is_group: bool = False
    choices: tuple[str, ...] = ()
    """As they are written; empty where a value is free."""

    @property
    def unit(self) -> str:
        """By the name's ending; else what the text begins with says it."""
        return next((unit for ending, unit in _UNITS.items() if self.key.endswith(ending)), "")


@cache
def key_docs() -> dict[str, KeyDoc]:
    """Keys and groups by their full names, groups before their keys."""
    return {doc.key: doc for doc in _docs(Config(), "")}


def _docs(component: Any, prefix: str) -> Iterator[KeyDoc]:
    hints, texts = get_type_hints(type(component)), field_texts(type(component))
    for field in dataclasses.fields(component):
        key, value = prefix + field.name, getattr(component, field.name)
        if dataclasses.is_dataclass(value):
            yield KeyDoc(key, "a group", None, texts.get(field.name, "") or _class_text(type(value)), is_group=True)
            yield from _docs(value, f"{key}.")
        else:
            hint = hints[field.name]
            yield KeyDoc(key, _kind(key, hint), value, texts.get(field.name, ""), choices=_choices(key, hint))


def _kind(key: str, hint: Any) -> str:
    if (named := kind_of(key)) is not None:
        return f"one of {', '.join(named.builtin_names)}, or module:name of your own"
    entries = entry_kind(hint)
    if entries is None:
        return words_of(hint)
    return f"a table by names of your own; an entry has {', '.join(get_type_hints(entries))}"


def _choices(key: str, hint: Any) -> tuple[str, ...]:
    if (named := kind_of(key)) is not None:
        return tuple(named.builtin_names)
    if hint is bool:
        return ("true", "false")
    return tuple(str(choice) for choice in get_args(hint)) if get_origin(hint) is Literal else ()


def field_texts(kind: type[Any]) -> dict[str, str]:
    """The string under each field of a dataclass that has one."""
    body = _definition(kind).body
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def _class_text(kind: type[Any]) -> str:
    """Of the class; else of the file that it has to itself."""
    said = ast.get_docstring(_definition(kind)) or inspect.getdoc(inspect.getmodule(kind)) or ""
    return " ".join(said.partition("\n\n")[0].split())


def _definition(kind: type[Any]) -> ast.ClassDef:
    definition = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(definition, ast.ClassDef), "a class is defined by its own statement"
    return definition
