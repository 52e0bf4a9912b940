"""HTML that cannot be written without escaping: text becomes markup only through `element`, or by being `Markup` already."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = frozenset({"input", "img", "br", "link", "meta", "hr"})


class Markup(str):
    """Finished HTML."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
"""A plain text is escaped; None is nothing."""


def element(tag: str, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """`element("a", "Go", href="/x", class_="big")` is `<a href="/x" class="big">Go</a>`.

    An underscore at the end of a name is dropped, inside it becomes a hyphen; False and None leave an attribute out.
    """
    written = "".join(_attribute(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{joined(children)}</{tag}>")


def joined(children: Child) -> Markup:
    if children is None:
        return Markup()
    if isinstance(children, Markup):
        return children
    if isinstance(children, str):
        return Markup(escape(children))
    return Markup("".join(joined(child) for child in children))


def _attribute(name: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
