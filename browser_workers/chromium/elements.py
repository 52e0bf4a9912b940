"""The elements that a visitor can act on, numbered, as the tabs of one session show them.

A number names an element of the tab's last reading for as long as its document is there, wherever it has moved since.
"""

from contextlib import suppress
from weakref import WeakKeyDictionary

from browser_workers.chromium.calls import CallRefused
from browser_workers.chromium.document_elements import DocumentElements, Found, Point
from browser_workers.chromium.isolated_world import Node
from browser_workers.chromium.listeners import Listeners
from browser_workers.chromium.tab import Tab
from browser_workers.observation.reading_order import reading_order
from schemas.errors import PageFailed
from schemas.messages import Element

_MOST_ELEMENTS = 500
NodeKey = tuple[str, int]
"""Of a node of the page: the root of its process and Chromium's number of it there."""


class _Reading:
    """Of one tab."""

    def __init__(self, tab: Tab) -> None:
        self.document = DocumentElements(tab.frames, tab.frames.main)
        self.listeners = Listeners(tab.send, self.document.world)
        self.elements: tuple[Element, ...] = ()
        self.found: list[Found] = []
        """What the elements are, in the same order."""


class Elements:
    """Of one session."""

    def __init__(self) -> None:
        self._readings: WeakKeyDictionary[Tab, _Reading] = WeakKeyDictionary()

    async def find_listeners(self, tab: Tab) -> None:
        """Learns which elements scripts listen on for clicks: readings know of those from then on."""
        await self._reading(tab).listeners.learn()

    async def read(self, tab: Tab) -> tuple[Element, ...]:
        """Those in view, in reading order, numbered from 1. Raises `PageFailed`."""
        reading = self._reading(tab)
        found = await reading.document.read()
        order = reading_order([each.box for each in found])[:_MOST_ELEMENTS]
        reading.found = [found[position] for position in order]
        reading.elements = tuple(
            Element(id=number, tag=each.tag, text=each.text, box=each.box)
            for number, each in enumerate(reading.found, start=1)
        )
        return reading.elements

    def last(self, tab: Tab) -> tuple[Element, ...]:
        """Those of the last reading."""
        return self._reading(tab).elements

    def size(self, tab: Tab) -> int | None:
        """Elements of any kind in the tab's documents as read last; None: more than could be gone through."""
        document = self._reading(tab).document
        return document.size if document.complete else None

    async def by_backend_node(self, tab: Tab) -> dict[NodeKey, Element]:
        """Those of the last reading, but for those of documents that have gone since or do not answer."""
        reading = self._reading(tab)
        nodes: dict[DocumentElements, dict[int, Node]] = {}
        for document in dict.fromkeys(each.document for each in reading.found):
            with suppress(CallRefused, PageFailed):
                nodes[document] = await document.world.described("millraceElements.nodes()")
        return {
            (found.document.root.frame, node.backendNodeId): element
            for element, found in zip(reading.elements, reading.found, strict=True)
            if (node := nodes.get(found.document, {}).get(found.position)) is not None
        }

    async def point_of_element(self, tab: Tab, number: int) -> Point | str:
        """Where a click reaches the element now, brought into view if need be; or a sentence that says why nowhere.

        Raises:
            PageFailed: the page does not answer.
        """
        reading = self._readings.get(tab)
        if reading is None or not reading.elements:
            return f"there is no element {number}: the last screenshot of this page has no marks"
        if not 1 <= number <= len(reading.elements):
            return f"there is no element {number}: the last screenshot has marks 1 to {len(reading.elements)}"
        element, found = reading.elements[number - 1], reading.found[number - 1]
        name = f'element {number} ({element.tag} "{element.text}")' if element.text else f"element {number} ({element.tag})"
        try:
            point = await found.document.point(found.position)
        except CallRefused:
            return f"{name} is not there any more: the page was left"
        return f"{name} {point}" if isinstance(point, str) else point

    def _reading(self, tab: Tab) -> _Reading:
        reading = self._readings.get(tab)
        if reading is None:
            reading = self._readings[tab] = _Reading(tab)
        return reading
