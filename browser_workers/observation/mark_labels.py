"""Places the labels of marks: pure geometry.

A label stands at the top right of its element, or at the bottom right where the screenshot ends above it. Where it would cover
another label there, or much of a small element, the best other place around the element is taken. Invariant: every label lies
within the screenshot, and equal elements give equal places.
"""

from collections.abc import Iterator, Sequence

from browser_workers.browser import Box

Size = tuple[int, int]

_CELL = 64
"""Side, in pixels, of the squares by which boxes that could meet are found."""
_HARMLESS = 0.03
"""Share of its neighbours that a label may cover where it would stand by itself."""
_LABEL_WEIGHT = 20.0
"""How much worse it is to cover a label than an element of its size."""
_DISTANCE_WEIGHT = 0.03
"""How much worse each place is than the one before it."""


def place_labels(boxes: Sequence[Box], sizes: Sequence[Size], screenshot: Size) -> list[Box]:
    """One label of the given size a box, in the same order. Those that come first have the first choice.

    >>> place_labels([(100, 50, 80, 20)], [(16, 12)], (400, 300))
    [(164, 38, 16, 12)]
    """
    elements, labels = _Ground(), _Ground()
    for box in boxes:
        elements.add(box)
    places: list[Box] = []
    for box, size in zip(boxes, sizes, strict=True):
        place = _best([_inside(each, screenshot) for each in _candidates(box, size)], elements, labels)
        labels.add(place)
        places.append(place)
    return places


def _best(candidates: Sequence[Box], elements: "_Ground", labels: "_Ground") -> Box:
    best, lowest = candidates[0], float("inf")
    for rank, place in enumerate(candidates):
        cost = _LABEL_WEIGHT * labels.covered_by(place) + elements.covered_by(place)
        if cost <= _HARMLESS:
            return place
        cost += _DISTANCE_WEIGHT * rank
        if cost < lowest:
            best, lowest = place, cost
    return best


def _candidates(box: Box, size: Size) -> Iterator[Box]:
    """From the best place to the worst."""
    (x, y, width, height), (w, h) = box, size
    right, bottom = x + width, y + height
    is_small = width <= 2 * w and height <= 2 * h
    beside = [(right, y - h), (right, y), (x - w, y)]
    if is_small:
        # To the right of a small box is its text, as a rule.
        beside = [(x - w, y), *beside[:2]]
    above = [(right - w, y - h), *beside]
    below = [(right - w, bottom), (right, bottom), (right, bottom - h), (x - w, bottom - h)]
    along = [place for left in range(right - 2 * w, x - 1, -w) for place in ((left, y - h), (left, bottom))][:12]
    corners = [(right - w, y), (right - w, bottom - h), (x, y), (x, bottom - h)]
    ordered = [*above, *below, *along, *corners] if y >= h else [*below, *beside[1:], *along, *corners]
    for left, top in ordered:
        yield left, top, w, h


def _inside(place: Box, screenshot: Size) -> Box:
    x, y, w, h = place
    return max(0, min(x, screenshot[0] - w)), max(0, min(y, screenshot[1] - h)), w, h


class _Ground:
    """Boxes, found by where they are."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[Box]] = {}

    def add(self, box: Box) -> None:
        for cell in _cells(box):
            self._cells.setdefault(cell, []).append(box)

    def covered_by(self, place: Box) -> float:
        """The shares of each box that lie under `place`, added up."""
        others = {box for cell in _cells(place) for box in self._cells.get(cell, ())}
        return sum(_common(place, box) / (box[2] * box[3]) for box in others)


def _cells(place: Box) -> Iterator[tuple[int, int]]:
    x, y, w, h = place
    for column in range(x // _CELL, (x + w - 1) // _CELL + 1):
        for row in range(y // _CELL, (y + h - 1) // _CELL + 1):
            yield column, row


def _common(a: Box, b: Box) -> int:
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return max(0, width) * max(0, height)
