"""Reads the accessibility tree of a tab, frames included, and has it put into words.

A document with so many elements that Chromium would take seconds for its tree, or one that gives way to another meanwhile, is
described by the elements in view alone, which the text says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import anyio
import msgspec

from browser_workers.browser import Box
from browser_workers.chromium.calls import CallRefused, Json, NoAnswer
from browser_workers.chromium.elements import Elements, NodeKey
from browser_workers.chromium.tab import Tab
from browser_workers.observation.accessibility_text import AccessibleNode, accessibility_text
from schemas.errors import PageFailed
from schemas.messages import Element

_MOST_ELEMENTS = 5000
"""Of a document; Chromium takes about 0.2 s for 1,000."""
_MOST_FRAMES = 20
_TREE_S = 10.0
"""Cap on the trees of all of a page's documents together: what scripts and other origins hide is not counted."""
_GRID = 1000
_LEVELLED = frozenset({"heading", "treeitem"})
_STATES = {
    "checked": {"true": "checked", "false": "unchecked", "mixed": "partly checked"},
    "pressed": {"true": "pressed", "false": "not pressed", "mixed": "partly pressed"},
    "expanded": {"true": "expanded", "false": "collapsed"},
    "selected": {"true": "selected"},
    "disabled": {"true": "disabled"},
    "required": {"true": "required"},
    "readonly": {"true": "read-only"},
    "focused": {"true": "focused"},
    "modal": {"true": "modal"},
    "invalid": {"true": "invalid", "grammar": "invalid", "spelling": "invalid"},
}
"""In words, by property and value."""


class _Value(msgspec.Struct):
    value: object = None


class _Property(msgspec.Struct):
    name: str
    value: _Value


class _AxNode(msgspec.Struct):
    nodeId: str  # noqa: N815
    ignored: bool = False
    role: _Value = msgspec.field(default_factory=_Value)
    name: _Value = msgspec.field(default_factory=_Value)
    description: _Value = msgspec.field(default_factory=_Value)
    value: _Value = msgspec.field(default_factory=_Value)
    properties: list[_Property] = []
    childIds: list[str] = []  # noqa: N815
    backendDOMNodeId: int = 0  # noqa: N815


class Accessibility:
    """Of one session."""

    def __init__(self, elements: Elements, viewport: tuple[int, int], *, rich: bool) -> None:
        self._elements = elements
        self._viewport = viewport
        self._rich = rich

    async def text(self, tab: Tab, *, numbered: bool) -> str:
        """The tree in words, once the elements were read; in the rich form with their numbers where the screenshot shows them.

        Raises:
            PageFailed: the page is gone.
        """
        size = self._elements.size(tab)
        if size is None or size > _MOST_ELEMENTS:
            return self._in_view(tab, "too large a page for its whole tree", numbered=numbered)
        nodes: dict[str, AccessibleNode] = {}
        try:
            with anyio.fail_after(_TREE_S):
                marks = await self._elements.by_backend_node(tab) if self._rich else {}
                root = await self._read(tab, nodes, marks, numbered=numbered)
        except (NoAnswer, TimeoutError):
            return self._in_view(tab, "a page whose tree takes too long", numbered=numbered)
        except (CallRefused, PageFailed):
            if tab.failure:
                raise
            return self._in_view(tab, "a page that changed while its tree was read", numbered=numbered)
        return accessibility_text(nodes, root, rich=self._rich)

    def _in_view(self, tab: Tab, why: str, *, numbered: bool) -> str:
        nodes = {
            str(each.id): AccessibleNode(
                each.tag, each.text, mark=each.id if numbered else None, box=_on_grid(each.box, self._viewport)
            )
            for each in self._elements.last(tab)
        }
        name = f"{why}: what can be acted on in view"
        nodes["all"] = AccessibleNode("RootWebArea", name, tuple(nodes))
        return accessibility_text(nodes, "all", rich=self._rich)

    async def _read(
        self, tab: Tab, nodes: dict[str, AccessibleNode], marks: Mapping[NodeKey, Element], *, numbered: bool
    ) -> str:
        """Adds the nodes of every frame; returns the root's key. A frame that goes away meanwhile is left out."""
        inner: dict[NodeKey, str] = {}
        root = ""
        frames = await tab.frames.inside_out(_MOST_FRAMES)
        for number, placed in enumerate(frames):
            is_main = placed is frames[-1]
            frame: Json = {"frameId": placed.frame.id}
            try:
                answer = await placed.root.send("Accessibility.getFullAXTree", frame)
                owner = None if is_main else (await placed.holder.send("DOM.getFrameOwner", frame))["backendNodeId"]
            except CallRefused:
                if is_main:
                    raise
                continue
            found = msgspec.convert(answer["nodes"], list[_AxNode])
            origin = placed.frame.securityOrigin
            for each in found:
                key = (placed.root.frame, each.backendDOMNodeId)
                element = marks.get(key)
                node = _accessible(each, str(number), inner.get(key), origin)
                if element is not None:
                    box = _on_grid(element.box, self._viewport)
                    node = replace(node, mark=element.id if numbered else None, box=box)
                nodes[f"{number}:{each.nodeId}"] = node
            root = f"{number}:{found[0].nodeId}" if found else ""
            if owner is not None:
                inner[placed.holder.frame, msgspec.convert(owner, int)] = root
        return root


def _accessible(each: _AxNode, frame: str, inner: str | None, origin: str) -> AccessibleNode:
    """`inner`: key of the document that it holds."""
    role = _text(each.role)
    children = tuple(f"{frame}:{child}" for child in each.childIds)
    # A document's own address and focus say nothing.
    properties = [] if role == "RootWebArea" else each.properties
    url = next((_text(found.value) for found in properties if found.name == "url"), "")
    return AccessibleNode(
        role=role,
        name=_text(each.name),
        children=children if inner is None else (*children, inner),
        ignored=each.ignored,
        states=tuple(_states(role, properties)),
        value=_text(each.value),
        description=_text(each.description),
        url=url.removeprefix(origin) or url,
    )


def _states(role: str, properties: list[_Property]) -> Iterator[str]:
    for each in properties:
        value = _text(each.value).lower()
        if each.name == "level" and role in _LEVELLED:
            yield f"level {value}"
        elif word := _STATES.get(each.name, {}).get(value):
            yield word


def _text(value: _Value) -> str:
    return "" if value.value is None else str(value.value)


def _on_grid(box: Box, viewport: tuple[int, int]) -> Box:
    x, y, width, height = box
    across, down = _GRID / viewport[0], _GRID / viewport[1]
    return round(x * across), round(y * down), round(width * across), round(height * down)
