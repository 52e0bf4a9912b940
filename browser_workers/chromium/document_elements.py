"""The elements that a visitor can act on in one document, and in the documents of other origins that its frames show.

Places are in the viewport of the document itself; documents of its own origin are read by its script. Those of another site
may live in processes of their own.
"""

import json
from dataclasses import dataclass, replace

import msgspec

from browser_workers.browser import Box
from browser_workers.chromium.calls import CallRefused
from browser_workers.chromium.isolated_world import IsolatedWorld
from browser_workers.chromium.page_frames import LocalRoot, PageFrames
from schemas.errors import PageFailed

Point = tuple[int, int]

_MOST_CANDIDATES = 3000
_MOST_FRAMES = 8
_DEEPEST = 3
"""Frames of other origins within each other that are read."""
_MOST_PAINTINGS = 3
"""Times that one is waited for where a frame ought to be in view: it may be late on a machine that is full."""
_SCAN_BUDGET_MS = 1500
"""Of the walk through the document; what was found until then is taken."""


@dataclass(frozen=True, slots=True)
class Found:
    tag: str
    text: str
    box: Box
    document: "DocumentElements"
    position: int
    """In the document's last reading."""


@dataclass(frozen=True, slots=True)
class _Inside:
    """Where a frame's content lies, and what is seen of it."""

    left: float
    top: float
    scale: float
    clip: tuple[float, float, float, float]
    """left, top, right, bottom"""

    def moved(self, x: float, y: float) -> tuple[float, float]:
        return self.left + x * self.scale, self.top + y * self.scale

    def shows(self, x: float, y: float) -> bool:
        left, top, right, bottom = self.clip
        return left <= x < right and top <= y < bottom

    def seen(self, box: Box) -> Box:
        """The part of a box in the frame that is seen."""
        left, top = self.moved(box[0], box[1])
        right, bottom = self.moved(box[0] + box[2], box[1] + box[3])
        x, y = round(max(left, self.clip[0])), round(max(top, self.clip[1]))
        return x, y, max(1, round(min(right, self.clip[2])) - x), max(1, round(min(bottom, self.clip[3])) - y)


class _Scan(msgspec.Struct):
    complete: bool
    visited: int
    elements: list[tuple[str, str, int, int, int, int]]
    frames: list[int]


class _Place(msgspec.Struct):
    x: int = 0
    y: int = 0
    problem: str = ""
    scrolled: bool = False
    """It was not in view."""


class DocumentElements:
    def __init__(
        self, frames: PageFrames, root: LocalRoot, frame: str = "", parent: "DocumentElements | None" = None, depth: int = 0
    ) -> None:
        self.root = root
        self.world = IsolatedWorld(root.send, "elements", frame)
        self._frames = frames
        self._parent = parent
        self._depth = depth
        self._position = 0
        """Of its frame in the parent's last reading."""
        self._inner: dict[str, DocumentElements] = {}
        self._scan = _Scan(complete=True, visited=0, elements=[], frames=[])

    @property
    def size(self) -> int:
        """Elements of any kind that the last reading met, in frames too."""
        return self._scan.visited + sum(document.size for document in self._inner.values())

    @property
    def complete(self) -> bool:
        """Whether the last reading came to the end."""
        return self._scan.complete and all(document.complete for document in self._inner.values())

    async def read(self) -> list[Found]:
        """Those in view. A frame stands for itself where nothing is found in it. Raises `PageFailed`."""
        answer = await self.world.value(f"millraceElements.scan({_MOST_CANDIDATES}, {_SCAN_BUDGET_MS})")
        scan = self._scan = msgspec.convert(answer, _Scan)
        found = [
            Found(tag, text, (x, y, width, height), self, position)
            for position, (tag, text, x, y, width, height) in enumerate(scan.elements)
        ]
        if not scan.frames or self._depth >= _DEEPEST:
            self._inner = {}
            return found
        replaced: set[int] = set()
        inner: list[Found] = []
        for position, frame in (await self._shown(scan.frames[:_MOST_FRAMES])).items():
            if elements := await self._read_frame(position, frame):
                replaced.add(position)
                inner += elements
        return [each for each in found if each.position not in replaced] + inner

    async def _shown(self, positions: list[int]) -> dict[int, str]:
        """Chromium's names of the frames at these positions. Of others nothing is kept."""
        try:
            nodes = await self.world.described(f"{json.dumps(positions)}.map((each) => millraceElements.nodes()[each])")
        except (CallRefused, PageFailed):
            return {}
        frames = {positions[index]: node.frameId for index, node in sorted(nodes.items()) if node.frameId}
        self._inner = {frame: inner for frame, inner in self._inner.items() if frame in frames.values()}
        return frames

    async def _read_frame(self, position: int, frame: str) -> list[Found]:
        document = self._inner.get(frame) or self._document(self.root, frame)
        try:
            return await self._read_inside(position, document)
        except (PageFailed, CallRefused):
            # It lives in another process, or is gone.
            self._inner.pop(frame, None)
        root = await self._frames.root_of(frame)
        if root is None:
            return []
        try:
            return await self._read_inside(position, self._document(root, frame))
        except (PageFailed, CallRefused):
            self._inner.pop(frame, None)
            return []

    def _document(self, root: LocalRoot, frame: str) -> "DocumentElements":
        document = self._inner[frame] = DocumentElements(self._frames, root, frame, self, self._depth + 1)
        return document

    async def _read_inside(self, position: int, document: "DocumentElements") -> list[Found]:
        document._position = position
        elements = await document.read()
        inside = await self._inside(position)
        if inside is None:
            return []
        middles = [inside.moved(x + width / 2, y + height / 2) for x, y, width, height in (each.box for each in elements)]
        reached = await self._reaches(position, middles)
        return [
            replace(each, box=inside.seen(each.box))
            for each, middle, is_reached in zip(elements, middles, reached, strict=True)
            if is_reached and inside.shows(*middle)
        ]

    async def point(self, position: int) -> Point | str:
        """Where a click reaches the element of the last reading now, or why nowhere. Raises `CallRefused`, `PageFailed`."""
        place, is_painted = await self._locate(position), True
        if place.scrolled and self.root is not self._frames.main:
            is_painted = await self._painted()
            place = await self._locate(position)
        if place.problem or self._parent is None:
            return place.problem or (place.x, place.y)
        point = await self._parent._outside(self._position, place) if is_painted else None
        if point is None:
            await self.world.value_here(f"millraceElements.scroll({position})")
            for _ in range(_MOST_PAINTINGS):
                if await self._painted():
                    break
            place = await self._locate(position)
            point = None if place.problem else await self._parent._outside(self._position, place)
        return point or place.problem or "is covered"

    async def _painted(self) -> bool:
        """Waits until what was scrolled is painted: where clicks go in another process is known by what was painted last.

        False: it is late, or out of view.
        """
        is_around = self._parent is None or await self._parent._painted()
        return await self.world.value_here("millraceElements.painted()") is True and is_around

    async def _outside(self, position: int, place: _Place) -> Point | None:
        """A point in the frame at `position` as the top document counts; None where a click would not reach it."""
        inside = await self._inside(position)
        if inside is None:
            return None
        x, y = inside.moved(place.x + 0.5, place.y + 0.5)
        if not inside.shows(x, y) or not (await self._reaches(position, [(x, y)]))[0]:
            return None
        here = _Place(int(x), int(y))
        return (here.x, here.y) if self._parent is None else await self._parent._outside(self._position, here)

    async def _locate(self, position: int) -> _Place:
        return msgspec.convert(await self.world.value_here(f"millraceElements.locate({position})"), _Place)

    async def _inside(self, position: int) -> _Inside | None:
        answer = await self.world.value_here(f"millraceElements.inside({position})")
        if answer is None:
            return None
        left, top, scale, *clip = msgspec.convert(answer, tuple[float, float, float, float, float, float, float])
        return _Inside(left, top, scale, (clip[0], clip[1], clip[2], clip[3]))

    async def _reaches(self, position: int, points: list[tuple[float, float]]) -> list[bool]:
        answer = await self.world.value_here(f"millraceElements.reaches({position}, {json.dumps(points)})")
        return msgspec.convert(answer, list[bool])
