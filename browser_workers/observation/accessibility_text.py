"""An accessibility tree as text for a policy, in a plain and in a rich form. Pure.

A line is one node, two spaces deeper than what it stands in:

    plain:  checkbox "Subscribe"
    rich:   [4] checkbox "Subscribe" checked required box=[12, 40, 9, 15]

Nodes that a reader gains nothing by are folded away: what they hold moves up. Text that only repeats a name is left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from browser_workers.browser import Box

MAX_LINES = 500
MAX_CHARACTERS = 16_000
_NAME_LIMIT = 200
_LONGEST = 500
"""Characters of a name that are looked at: a page may give thousands of nodes names of a million."""
_DEEPEST = 20
"""Levels that are indented; deeper ones stand below each other."""

_NAMES = {"RootWebArea": "document", "StaticText": "text", "Iframe": "frame", "img": "image"}
_TEXT = "StaticText"
_INLINE = frozenset(
    {"paragraph", "emphasis", "strong", "mark", "LabelText", "Abbr", "subscript", "superscript", "time", "code"}
)
"""Unnamed ones that hold nothing but text are one text."""
_STRUCTURAL = _INLINE | frozenset(
    {"generic", "none", "presentation", "image", "img", "LineBreak", "MenuListPopup", "LayoutTable", "LayoutTableRow"}
    | {"LayoutTableCell", "Section", "rowgroup", "DescriptionList", "SvgRoot", "graphics-document", "ListMarker", "Legend"}
    | {"ignored", "Pre", "blockquote", "Figcaption"}
)
_EMPTY_IS_NOTHING = frozenset(
    {"list", "listitem", "row", "cell", "gridcell", "table", "group", "figure", "Canvas", "separator"}
)
_NAMED_AS_A_WHOLE = frozenset({"button", "checkbox", "radio", "switch", "tab", "menuitem", "option", "slider", "link", "img"})
"""What is written in them is their name, unless the page gives another one."""
_LEFT_OUT = frozenset({"InlineTextBox", "LineBreak", "ListMarker"})


@dataclass(frozen=True, slots=True)
class AccessibleNode:
    role: str
    """As Chromium names it."""
    name: str = ""
    children: tuple[str, ...] = ()
    ignored: bool = False
    states: tuple[str, ...] = ()
    value: str = ""
    description: str = ""
    url: str = ""
    mark: int | None = None
    """Number in the screenshot."""
    box: Box | None = None
    """On the grid that actions count in."""


@dataclass(slots=True)
class _Line:
    node: AccessibleNode
    name: str
    children: "list[_Line]" = field(default_factory=list)


def accessibility_text(
    nodes: Mapping[str, AccessibleNode],
    root: str,
    *,
    rich: bool,
    max_lines: int = MAX_LINES,
    max_characters: int = MAX_CHARACTERS,
) -> str:
    """The tree below `root`; says at its end how many lines were left out, if any."""
    lines = list(_rendered(_folded(nodes, root, rich=rich), rich=rich))
    num_kept, num_characters = 0, 0
    for line in lines[:max_lines]:
        num_characters += len(line) + 1
        if num_characters > max_characters:
            break
        num_kept += 1
    if num_kept < len(lines):
        return "\n".join([*lines[:num_kept], f"({len(lines) - num_kept} more lines were left out)"])
    return "\n".join(lines)


def _folded(nodes: Mapping[str, AccessibleNode], root: str, *, rich: bool) -> list[_Line]:
    """Pages nest as deep as they like: no recursion."""
    kept: dict[str, list[_Line]] = {}
    for key in reversed(_preorder(nodes, root)):
        node = nodes[key]
        children = [line for child in node.children for line in kept.pop(child, [])]
        kept[key] = _fold(node, children, rich=rich)
    return kept.get(root, [])


def _preorder(nodes: Mapping[str, AccessibleNode], root: str) -> list[str]:
    order: list[str] = []
    seen: set[str] = set()
    stack = [root]
    while stack:
        key = stack.pop()
        if key in nodes and key not in seen:
            seen.add(key)
            order.append(key)
            stack.extend(reversed(nodes[key].children))
    return order


def _fold(node: AccessibleNode, children: list[_Line], *, rich: bool) -> list[_Line]:
    """What stands for the node: itself with its children, its children alone, or nothing."""
    if node.role in _LEFT_OUT:
        return []
    name = _plain(node.name)
    if node.role == _TEXT and not node.ignored:
        return [_Line(node, name)] if name else []
    if not (rich and (node.mark is not None or node.box is not None)):
        if node.ignored or (node.role in _STRUCTURAL and not name):
            return _joined(node, children)
        if node.role in _EMPTY_IS_NOTHING and not name and not children:
            return []
    return [_Line(node, name, [child for child in children if not _repeats(child, node, name, rich=rich)])]


def _repeats(child: _Line, node: AccessibleNode, name: str, *, rich: bool) -> bool:
    """Whether a text says nothing beyond what its node's own line says."""
    if child.node.role != _TEXT:
        return False
    return child.name in name or bool(name and node.role in _NAMED_AS_A_WHOLE) or (rich and child.name == _plain(node.value))


def _joined(node: AccessibleNode, children: list[_Line]) -> list[_Line]:
    if node.role in _INLINE and len(children) > 1 and all(child.node.role == _TEXT for child in children):
        text = AccessibleNode(_TEXT)
        return [_Line(text, " ".join(child.name for child in children))]
    return children


def _rendered(lines: list[_Line], *, rich: bool) -> Iterator[str]:
    stack = [(line, 0) for line in reversed(lines)]
    while stack:
        line, depth = stack.pop()
        yield "  " * min(depth, _DEEPEST) + (_rich(line) if rich else _basic(line))
        stack.extend((child, depth + 1) for child in reversed(line.children))


def _basic(line: _Line) -> str:
    role = _NAMES.get(line.node.role, line.node.role.lower())
    return f'{role} "{_short(line.name)}"' if line.name else role


def _rich(line: _Line) -> str:
    node = line.node
    parts = [f"[{node.mark}]" if node.mark is not None else "", _basic(line), *node.states]
    value, description = _plain(node.value), _plain(node.description)
    if value and value != line.name:
        parts.append(f'value="{_short(value)}"')
    if description and description != line.name:
        parts.append(f'description="{_short(description)}"')
    if node.url:
        parts.append(f"url={_short(node.url)}")
    if node.box is not None:
        parts.append(f"box={list(node.box)}")
    return " ".join(part for part in parts if part)


def _plain(text: str) -> str:
    return " ".join(text[:_LONGEST].split())


def _short(text: str) -> str:
    return text if len(text) <= _NAME_LIMIT else f"{text[: _NAME_LIMIT - 1]}…"
