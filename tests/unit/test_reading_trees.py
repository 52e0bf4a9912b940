"""A tree that cannot be had is no failure of the page: what is in view is said instead."""

from dataclasses import dataclass
from typing import cast

import anyio
import pytest

from browser_workers.chromium import accessibility
from browser_workers.chromium.accessibility import Accessibility
from browser_workers.chromium.calls import CallRefused, Json, NoAnswer
from browser_workers.chromium.elements import Elements, NodeKey
from browser_workers.chromium.frames import Frame
from browser_workers.chromium.page_frames import LocalRoot, PlacedFrame
from browser_workers.chromium.tab import Tab
from schemas.errors import BrowserError, BrowserLost, PageFailed
from schemas.messages import Element

pytestmark = pytest.mark.anyio
CHANGED = "a page that changed while its tree was read"
SLOW = "a page whose tree takes too long"


class OneElement:
    def size(self, tab: Tab) -> int:
        return 1

    def last(self, tab: Tab) -> tuple[Element, ...]:
        return (Element(id=1, tag="a", text="Next", box=(0, 0, 10, 10)),)

    async def by_backend_node(self, tab: Tab) -> dict[NodeKey, Element]:
        return {}


@dataclass
class ScriptedTab:
    """Its own frames, which fail."""

    error: BrowserError
    failure: str = ""

    @property
    def frames(self) -> "ScriptedTab":
        return self

    async def inside_out(self, most: int) -> list[PlacedFrame]:
        raise self.error


class SlowFrames:
    """A page with frames, of which each takes more than half of the time that there is for all."""

    failure = ""

    def __init__(self, num_frames: int) -> None:
        self._placed = [
            PlacedFrame(Frame(str(each)), *[LocalRoot("", self._send, self._ask)] * 2) for each in range(num_frames)
        ]

    @property
    def frames(self) -> "SlowFrames":
        return self

    async def inside_out(self, most: int) -> list[PlacedFrame]:
        return self._placed

    async def _send(self, method: str, params: Json) -> Json:
        if method == "DOM.getFrameOwner":
            return {"backendNodeId": 1}
        await anyio.sleep(0.6 * accessibility._TREE_S)
        return {"nodes": [{"nodeId": "1"}]}

    async def _ask(self, method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
        return await self._send(method, params or {})


async def text(tab: object) -> list[str]:
    reading = Accessibility(cast(Elements, OneElement()), (100, 100), rich=True)
    return (await reading.text(cast(Tab, tab), numbered=True)).split("\n")


@pytest.mark.parametrize(
    ("error", "why"), [(CallRefused("gone"), CHANGED), (PageFailed("cannot be read"), CHANGED), (NoAnswer("silent"), SLOW)]
)
async def test_what_is_in_view_is_said_where_a_tree_cannot_be_read(error: BrowserError, why: str) -> None:
    document, element = await text(ScriptedTab(error))
    assert document == f'document "{why}: what can be acted on in view"'
    assert element == '  [1] a "Next" box=[0, 0, 100, 100]'


async def test_a_page_has_one_deadline_however_many_frames_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accessibility, "_TREE_S", 0.1)
    assert (await text(SlowFrames(6)))[0] == f'document "{SLOW}: what can be acted on in view"'


@pytest.mark.parametrize("tab", [ScriptedTab(PageFailed("it crashed"), "it crashed"), ScriptedTab(BrowserLost("it ended"))])
async def test_a_page_that_is_gone_is_said_to_be(tab: ScriptedTab) -> None:
    with pytest.raises(type(tab.error), match=str(tab.error)):
        await text(tab)
