"""The elements that a visitor can act on, as the tabs of one session show them.

A number names an element of the tab's last reading for as long as its document is there, wherever it has moved since.
"""

from weakref import WeakKeyDictionary

import msgspec

from browser_workers.chromium.isolated_world import IsolatedWorld
from browser_workers.chromium.listeners import Listeners
from browser_workers.chromium.tab import CallRefused, Json, Tab
from browser_workers.reading_order import reading_order
from schemas.messages import Element

Point = tuple[int, int]

_MOST_CANDIDATES = 3000
MOST_ELEMENTS = 500
_SCAN_BUDGET_MS = 1500
"""Of the walk through the document; what was found until then is taken."""


class _Scan(msgspec.Struct):
    complete: bool
    elements: list[tuple[str, str, int, int, int, int]]


class _Place(msgspec.Struct):
    x: int = 0
    y: int = 0
    problem: str = ""


class _Reading:
    """The elements of one tab."""

    def __init__(self, tab: Tab) -> None:
        async def send(method: str, params: Json) -> Json:
            return await tab.send(method, params)

        self.world = IsolatedWorld(send, "elements")
        self.listeners = Listeners(send, self.world)
        self.elements: tuple[Element, ...] = ()
        self.positions: list[int] = []
        """By number, from 1: the position in the world's own list."""


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
        answer = await reading.world.value(f"millraceElements.scan({_MOST_CANDIDATES}, {_SCAN_BUDGET_MS})")
        found = msgspec.convert(answer, _Scan).elements
        order = reading_order([(x, y, width, height) for _, _, x, y, width, height in found])[:MOST_ELEMENTS]
        reading.positions = order
        reading.elements = tuple(
            Element(id=number, tag=found[position][0], text=found[position][1], box=found[position][2:])
            for number, position in enumerate(order, start=1)
        )
        return reading.elements

    def last(self, tab: Tab) -> tuple[Element, ...]:
        """Those of the last reading."""
        return self._reading(tab).elements

    async def num_elements(self, tab: Tab) -> int:
        """Of the tab's documents, whatever their kind."""
        return msgspec.convert(await self._reading(tab).world.value("millraceElements.numElements()"), int)

    async def by_backend_node(self, tab: Tab) -> dict[int, Element]:
        """Those of the last reading by Chromium's own number of their node. Raises `CallRefused`, `PageFailed`."""
        reading = self._reading(tab)
        nodes = await reading.world.backend_nodes("millraceElements.nodes()")
        return {
            node: element
            for element, position in zip(reading.elements, reading.positions, strict=True)
            if (node := nodes.get(position)) is not None
        }

    async def point_of_element(self, tab: Tab, number: int) -> Point | str:
        """Where a click reaches the element now, brought into view if need be; or a sentence that says why nowhere.

        Raises:
            PageFailed: the page does not answer.
        """
        reading = self._readings.get(tab)
        if reading is None or not reading.elements:
            return f"there is no element {number}: the last picture of this page has no marks"
        if not 1 <= number <= len(reading.elements):
            return f"there is no element {number}: the last picture has marks 1 to {len(reading.elements)}"
        element = reading.elements[number - 1]
        name = f'element {number} ({element.tag} "{element.text}")' if element.text else f"element {number} ({element.tag})"
        try:
            answer = await reading.world.value_here(f"millraceElements.locate({reading.positions[number - 1]})")
        except CallRefused:
            return f"{name} is not there any more: the page was left"
        place = msgspec.convert(answer, _Place)
        return f"{name} {place.problem}" if place.problem else (place.x, place.y)

    def _reading(self, tab: Tab) -> _Reading:
        reading = self._readings.get(tab)
        if reading is None:
            reading = self._readings[tab] = _Reading(tab)
        return reading
