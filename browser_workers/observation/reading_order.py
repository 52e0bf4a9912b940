"""The order in which a reader meets boxes on a page: lines from the top, each from the left."""

from collections.abc import Sequence

from browser_workers.browser import Box

_LINE_LIMIT = 24.0
"""Pixels that the middles of two boxes of one line lie apart at most, however tall the boxes are."""


def reading_order(boxes: Sequence[Box]) -> list[int]:
    """Positions of `boxes` in reading order; equal boxes stay in the order they came in.

    >>> reading_order([(100, 2, 10, 20), (0, 50, 10, 20), (0, 0, 10, 20)])
    [2, 0, 1]
    """
    left = sorted(range(len(boxes)), key=lambda position: (_middle(boxes[position]), position))
    ordered: list[int] = []
    while left:
        first = boxes[left[0]]
        end = _middle(first) + min(first[3] / 2, _LINE_LIMIT)
        line = [position for position in left if _middle(boxes[position]) < end] or left[:1]
        left = left[len(line) :]
        ordered += sorted(line, key=lambda position: (boxes[position][0], position))
    return ordered


def _middle(box: Box) -> float:
    return box[1] + box[3] / 2
