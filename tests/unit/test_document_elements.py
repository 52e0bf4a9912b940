"""Clicks into another process: where they go is known by what was painted last."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from browser_workers.chromium.document_elements import DocumentElements
from browser_workers.chromium.page_frames import LocalRoot

pytestmark = pytest.mark.anyio


class World:
    """Of a document whose element is out of view at first."""

    def __init__(self, *painted: bool) -> None:
        self._painted: Iterator[bool] = iter(painted)
        self.done: list[str] = []

    async def value_here(self, expression: str) -> object:
        asked, _, given = expression.removeprefix("millraceElements.").partition("(")
        self.done.append(asked)
        match asked:
            case "painted":
                return next(self._painted)
            case "locate":
                return {"x": 5, "y": 6, "scrolled": self.done.count("locate") == 1}
            case "inside":
                return [100, 40, 1, 0, 0, 400, 300]
            case "reaches":
                return [True] * len(json.loads(f"[{given[:-1]}]")[1])
        return None


def root(frame: str) -> LocalRoot:
    return LocalRoot(frame, cast(Any, None), cast(Any, None))


@pytest.mark.parametrize(
    ("painted", "scrolled"), [((True,), 0), ((False, True), 1), ((False, False, True), 1), ((False,) * 4, 1)]
)
async def test_a_frame_that_is_painted_late_is_waited_for(painted: tuple[bool, ...], scrolled: int) -> None:
    """For so long: one that is out of view never is."""
    frames = cast(Any, SimpleNamespace(main=root("")))
    outer, world = World(*[True] * len(painted)), World(*painted)
    parent = DocumentElements(frames, frames.main)
    inner = DocumentElements(frames, root("frame"), "frame", parent, 1)
    parent.world, inner.world = cast(Any, outer), cast(Any, world)
    assert await inner.point(0) == (105, 46)
    assert (world.done.count("painted"), world.done.count("scroll")) == (len(painted), scrolled)
