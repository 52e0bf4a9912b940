"""Reads the accessibility tree of a tab, frames included, and has it put into words.

A document with so many elements that Chromium would take seconds for its tree is described by the elements in view alone,
which the text says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

import msgspec

from browser_workers.browser import Box
from browser_workers.chromium.calls import CallRefused, NoAnswer
from browser_workers.chromium.elements import Elements
from browser_workers.chromium.frames import Frame, FrameTree, frame_tree
from browser_workers.chromium.tab import Tab
from browser_workers.observation.accessibility_text import AccessibleNode, accessibility_text
from schemas.errors import PageFailed
from schemas.messages import Element

_MOST_ELEMENTS = 5000
"""Of a document; Chromium takes about 0.2 s for 1,000."""
_MOST_FRAMES = 20
_TREE_S = 10.0
"""Cap on one document's tree: what scripts and other origins hide is not counted."""
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
            PageFailed: the page does not answer.
        """
        size = self._elements.size(tab)
        if size is None or size > _MOST_ELEMENTS:
            return self._in_view(tab, "too large a page for its whole tree", numbered=numbered)
        nodes: dict[str, AccessibleNode] = {}
        try:
            marks = await self._elements.by_backend_node(tab) if self._rich else {}
            root = await self._read(tab, nodes, marks, numbered=numbered)
        except NoAnswer:
            return self._in_view(tab, "a page whose tree takes too long", numbered=numbered)
        except CallRefused as error:
            raise PageFailed(f"the accessibility tree cannot be read: {error}") from error
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

    async def _read(self, tab: Tab, nodes: dict[str, AccessibleNode], marks: Mapping[int, Element], *, numbered: bool) -> str:
        """Adds the nodes of every frame; returns the root's key. A frame that goes away meanwhile is left out."""
        tree = await frame_tree(tab.send)
        inner: dict[int, str] = {}
        root = ""
        for number, frame in enumerate([*islice(_below(tree), _MOST_FRAMES), tree.frame]):
            is_main = frame is tree.frame
            try:
                answer = await tab.send("Accessibility.getFullAXTree", {"frameId": frame.id}, timeout_s=_TREE_S)
                owner = None if is_main else (await tab.send("DOM.getFrameOwner", {"frameId": frame.id}))["backendNodeId"]
            except CallRefused:
                if is_main:
                    raise
                continue
            found = msgspec.convert(answer["nodes"], list[_AxNode])
            origin = frame.securityOrigin
            for each in found:
                element = marks.get(each.backendDOMNodeId)
                node = _accessible(each, str(number), inner.get(each.backendDOMNodeId), origin)
                if element is not None:
                    box = _on_grid(element.box, self._viewport)
                    node = replace(node, mark=element.id if numbered else None, box=box)
                nodes[f"{number}:{each.nodeId}"] = node
            root = f"{number}:{found[0].nodeId}" if found else ""
            if owner is not None:
                inner[msgspec.convert(owner, int)] = root
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


def _below(tree: FrameTree) -> Iterator[Frame]:
    """Innermost first: what a frame holds is known before it."""
    for child in tree.childFrames:
        yield from _below(child)
        yield child.frame


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
