"""Marks and screenshots belong together: what an observer does about pages that move between the two."""

import io
from collections.abc import Iterator
from typing import cast

import pytest
from PIL import Image

from browser_workers.browser import PageState
from browser_workers.chromium.calls import NoAnswer
from browser_workers.chromium.observing import Observer
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.tab import Tab
from browser_workers.limits import Limits
from browser_workers.observation.marks import draw_marks
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import HttpPools
from schemas.messages import Element, Screenshot

pytestmark = pytest.mark.anyio

FIRST = (Element(id=1, tag="a", text="", box=(2, 20, 10, 10)),)
SECOND = (Element(id=1, tag="a", text="", box=(20, 20, 10, 10)),)
THIRD = (Element(id=1, tag="a", text="", box=(40, 20, 10, 10)),)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _white() -> Screenshot:
    data = io.BytesIO()
    Image.new("RGB", (60, 50), "white").save(data, format="PNG")
    return Screenshot(data=data.getvalue(), media_type="image/png", width=60, height=50)


WHITE = _white()


class ScriptedElements:
    def __init__(self, *readings: tuple[Element, ...]) -> None:
        self._readings: Iterator[tuple[Element, ...]] = iter(readings)
        self.silent = 0
        """Times that the page does not answer."""

    async def find_listeners(self, tab: Tab) -> None:
        if self.silent:
            self.silent -= 1
            raise NoAnswer("nothing came")

    async def read(self, tab: Tab) -> tuple[Element, ...]:
        return next(self._readings)


class ScriptedTab:
    def __init__(self) -> None:
        self.done: list[str] = []

    async def capture(self, *, jpeg_quality: int = 0) -> Screenshot:
        self.done.append("screenshot")
        return WHITE

    async def value_of(self, expression: str) -> str:
        self.done.append("question")
        return ""

    async def state(self) -> PageState:
        self.done.append("state")
        return PageState(url="u", title="t")


def observer(elements: ScriptedElements) -> Observer:
    settings = TabSettings(BrowserConfig(screenshot_format="png"), context=ContextConfig(interaction_mode="set_of_marks"))
    observer = Observer(settings, Limits(HttpPools()))
    observer.elements = elements  # type: ignore[assignment]
    return observer


@pytest.mark.parametrize(
    ("readings", "num_screenshots"),
    [((FIRST, FIRST), 1), ((FIRST, SECOND, SECOND), 2), ((FIRST, SECOND, THIRD), 2)],
)
async def test_a_page_that_moves_is_captured_once_more(
    readings: tuple[tuple[Element, ...], ...], num_screenshots: int
) -> None:
    tab = ScriptedTab()
    view = await observer(ScriptedElements(*readings)).view(cast(Tab, tab), tab.state)
    assert tab.done == ["screenshot"] * num_screenshots + ["state"]
    assert view.elements == readings[-1]
    assert view.screenshot == draw_marks(WHITE, readings[-1], screenshot_format="png", jpeg_quality=80)
    assert view.blank


async def test_a_document_that_does_not_answer_is_asked_again_once_a_navigation_is_given_up() -> None:
    tab, elements = ScriptedTab(), ScriptedElements(FIRST, FIRST)
    elements.silent = 1
    view = await observer(elements).view(cast(Tab, tab), tab.state)
    assert tab.done == ["question", "screenshot", "state"]
    assert view.elements == FIRST
    elements.silent = 2
    with pytest.raises(NoAnswer):
        await observer(elements).view(cast(Tab, tab), tab.state)
