"""The tabs of a context while they come and go: what is said of them, whatever closes meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Page, Request
from playwright.async_api import Error as PlaywrightError

from browser_workers.browser import Opening, PageState
from browser_workers.chromium import windows as windows_module
from browser_workers.chromium.calls import NoAnswer
from browser_workers.chromium.page_events import PageEvents
from browser_workers.chromium.paging import Paging
from browser_workers.chromium.process.launch import Chromium
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.tab import Tab
from browser_workers.chromium.windows import Windows
from schemas.browser_config import BrowserConfig
from schemas.errors import BrowserLost, PageFailed
from schemas.messages import Action, ActionKind, BrowserTab

pytestmark = pytest.mark.anyio
OPENING = Opening("http://site/")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class SilentContext:
    _impl_obj = SimpleNamespace(_guid="context@1")

    def on(self, event: str, handler: Callable[..., None]) -> None: ...


@dataclass(eq=False)
class ScriptedPage:
    url: str
    num_closed: int = 0

    def on(self, event: str, handler: Callable[..., None]) -> None: ...

    async def close(self) -> None:
        self.num_closed += 1


@dataclass(eq=False)
class FirstRequest:
    """Of a window: whose it is can be asked once its page is there."""

    page: ScriptedPage
    is_there: bool = False

    @property
    def frame(self) -> SimpleNamespace:
        if not self.is_there:
            raise PlaywrightError("the request was issued before the frame is created")
        return SimpleNamespace(page=self.page)

    def is_navigation_request(self) -> bool:
        return True


@dataclass(eq=False)
class ScriptedTab:
    """Something may happen while it is asked."""

    name: str
    meanwhile: Callable[[], None] = lambda: None
    page: ScriptedPage = field(default_factory=lambda: ScriptedPage("about:blank"))
    navigation: Any = None
    loading: Any = field(default_factory=lambda: SimpleNamespace(num_documents=1))

    async def state(self) -> PageState:
        return PageState(f"http://site/{self.name}", self.name)

    async def send(self, method: str, timeout_s: float = 0.0) -> dict[str, object]:
        self.meanwhile()
        return {"targetInfo": {"title": self.name, "url": f"http://site/{self.name}"}}

    async def prepare_window(self) -> None: ...

    async def settle(self) -> None:
        self.meanwhile()

    async def is_first(self) -> bool:
        self.meanwhile()
        return True


def windows_of(*tabs: ScriptedTab, group: TaskGroup | None = None) -> Windows:
    """The last one is active."""
    context = cast(BrowserContext, SilentContext())
    windows = Windows(
        Chromium(cast(Any, None), cast(Any, None)),
        cast(Any, group),
        TabSettings(BrowserConfig()),
        context,
        OPENING,
        PageEvents(context, cast(Any, None), timeout_s=1.0),
    )
    windows.tabs += cast("list[Tab]", tabs)
    windows._recent += cast("list[Tab]", tabs)
    return windows


async def test_tabs_that_close_while_they_are_listed() -> None:
    first, second, popup = ScriptedTab("first"), ScriptedTab("second"), ScriptedTab("popup")
    windows = windows_of(first, second, popup)
    first.meanwhile = lambda: windows._on_closed(cast(Tab, popup), "the page closed itself")
    cast(Any, popup).fail = lambda reason: None
    assert (await windows.state(cast(Tab, popup))).tabs == (
        BrowserTab(title="first", url="http://site/first"),
        BrowserTab(title="second", url="http://site/second"),
        BrowserTab(title="popup", url="http://site/popup", active=True),
    )
    assert [tab.page.url for tab in windows.tabs] == ["about:blank"] * 2


async def test_a_tab_whose_title_comes_late_is_asked_once_more() -> None:
    first, second = ScriptedTab("first"), ScriptedTab("second")
    late = iter([NoAnswer("its deadline has passed")])

    def is_late_once() -> None:
        for error in late:
            raise error

    first.meanwhile = is_late_once
    windows = windows_of(first, second)
    assert [tab.title for tab in (await windows.state(cast(Tab, second))).tabs] == ["first", "second"]


async def test_a_window_that_closes_itself_while_it_is_waited_for_leaves_the_others() -> None:
    first, popup = ScriptedTab("first"), ScriptedTab("popup")
    windows = windows_of(first, popup)
    cast(Any, popup).fail = lambda reason: None

    def closes_itself() -> None:
        windows._on_closed(cast(Tab, popup), "the page closed itself")
        raise PageFailed("the page closed itself")

    popup.meanwhile = closes_itself
    assert await windows.settled() is cast(Tab, first)


async def test_a_tab_that_closes_itself_while_the_policy_goes_back_from_it() -> None:
    first, second, popup = ScriptedTab("first"), ScriptedTab("second"), ScriptedTab("popup")
    windows = windows_of(first, second, popup)
    cast(Any, popup).fail = lambda reason: None
    popup.meanwhile = lambda: windows._on_closed(cast(Tab, popup), "the page closed itself")
    popup.navigation = popup
    performed = await Paging(windows, OPENING).perform(cast(Tab, popup), Action(kind=ActionKind.GO_BACK))
    assert (performed.refused, performed.notice) == ("", "there was no page before it, so the tab was closed")
    assert windows.tabs == cast("list[Tab]", [first, second])


async def test_numbers_of_tabs_are_those_of_the_observation_whatever_closes_and_opens_afterwards() -> None:
    first, second, third, late = (ScriptedTab(name) for name in ("first", "second", "third", "late"))
    windows = windows_of(first, second, third)
    paging = Paging(windows, OPENING)
    assert len((await windows.state(cast(Tab, third))).tabs) == 3
    cast(Any, first).fail = lambda reason: None
    windows._on_closed(cast(Tab, first), "the page closed itself")
    windows.tabs.append(cast(Tab, late))

    async def refused(kind: ActionKind, position: int) -> str:
        return (await paging.perform(cast(Tab, third), Action(kind=kind, tab=position))).refused

    assert await refused(ActionKind.SWITCH_TAB, 1) == "switch_tab 1 names a tab that is closed by now"
    assert await refused(ActionKind.CLOSE_TAB, 1) == "close_tab 1 names a tab that is closed by now"
    assert await refused(ActionKind.SWITCH_TAB, 4) == "switch_tab 4 names no tab: there are tabs 1 to 3"
    assert await refused(ActionKind.SWITCH_TAB, 2) == ""
    assert windows.front is cast(Tab, second)
    assert await refused(ActionKind.CLOSE_TAB, 3) == ""
    assert windows.tabs == cast("list[Tab]", [second, late])


async def test_tabs_that_were_given_up_are_closed_once_however_often_a_storm_is_seen() -> None:
    tabs = ScriptedTab("first"), ScriptedTab("second")
    for tab in tabs:
        cast(Any, tab).fail = lambda reason, kind: None
    async with anyio.create_task_group() as group:
        windows = windows_of(*tabs, group=group)
        for _ in range(1000):
            windows._give_up("the page asks for documents without end")
    assert [tab.page.num_closed for tab in tabs] == [1, 1]


async def test_what_is_seen_of_a_storm_once_the_browser_is_gone_starts_nothing() -> None:
    tab = ScriptedTab("first")
    cast(Any, tab).fail = lambda reason, kind: None
    async with anyio.create_task_group() as group:
        windows = windows_of(tab, group=group)
    windows.lose(BrowserLost("the browser ended while it was in use"))
    windows._give_up("the page asks for documents without end")
    assert str(await windows.wait_failed()) == "the browser ended while it was in use"
    assert tab.page.num_closed == 0


@pytest.mark.parametrize("num_tabs", [1, windows_module.MAX_TABS], ids=["shown", "refused"])
async def test_a_window_that_arrives_leaves_the_others_that_come_awaited(
    monkeypatch: pytest.MonkeyPatch, num_tabs: int
) -> None:
    monkeypatch.setattr(windows_module, "Tab", lambda page, *_, **__: ScriptedTab("popup", page=page))
    requests = [FirstRequest(ScriptedPage("http://site/a")), FirstRequest(ScriptedPage("http://site/b"))]
    async with anyio.create_task_group() as group:
        windows = windows_of(*(ScriptedTab("first") for _ in range(num_tabs)), group=group)
        windows.num_opened = num_tabs
        for request in requests:
            windows._on_request(cast(Request, request))
        seen = []
        for request in requests:
            seen.append(windows.coming)
            request.is_there = True
            windows._on_page(cast(Page, request.page))
    assert (seen, windows.coming) == ([True, True], False)
