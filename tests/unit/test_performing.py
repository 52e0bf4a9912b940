"""What an action set off is waited for and said with it, however late the browser tells of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from playwright.async_api import BrowserContext, Dialog, Download

from browser_workers.browser import Opening
from browser_workers.chromium import page_events as page_events_module
from browser_workers.chromium.effect_observer import Effect
from browser_workers.chromium.page_events import MAX_DIALOGS, PageEvents
from browser_workers.chromium.performing import Performer
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.side_effects import SideEffect
from schemas.browser_config import BrowserConfig
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
CLICK = Action(kind=ActionKind.CLICK, point=(500, 500))


@dataclass
class ScriptedTab:
    """The only one; also the stability of its page, and the windows that it is in."""

    side_effects: tuple[SideEffect, ...] = ()
    before_input: Callable[[], None] = lambda: None
    num_opened = 1
    shown = None
    page = SimpleNamespace(mouse=SimpleNamespace(click=lambda *_, **__: anyio.lowlevel.checkpoint()))
    loading = SimpleNamespace(navigation_error="")

    @property
    def stability(self) -> "ScriptedTab":
        return self

    async def active(self) -> "ScriptedTab":
        return self

    settled = active

    def begin_action(self) -> None: ...

    async def watch(self, point: object, *, scrolls: bool) -> None:
        self.before_input()

    async def call(self, what: str, awaitable: Awaitable[None]) -> None:
        await awaitable

    async def arrive(self) -> None: ...

    def take_status(self) -> str:
        return ""

    def take_side_effects(self) -> tuple[SideEffect, ...]:
        return self.side_effects

    def effect(self) -> Effect:
        return Effect()


def performer_of(tab: ScriptedTab, events: PageEvents) -> Performer:
    return Performer(cast(Any, tab), events, TabSettings(BrowserConfig()), Opening("http://site/"), cast(Any, None))


def events_in(group: object) -> PageEvents:
    context = SimpleNamespace(on=lambda event, handler: None)
    return PageEvents(cast(BrowserContext, context), cast(Any, group), timeout_s=HANGS_S)


async def test_a_download_that_a_page_announced_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_events_module, "_APPEARS_S", HANGS_S)
    events = events_in(None)
    performer = performer_of(ScriptedTab(side_effects=(("download", "http://site/report.zip"),)), events)
    notices = []

    async def perform() -> None:
        notices.append((await performer.perform(CLICK)).notice)

    async with anyio.create_task_group() as group:
        group.start_soon(perform)
        await anyio.wait_all_tasks_blocked()
        events._on_download(cast(Download, SimpleNamespace(suggested_filename="report.zip")))
    assert notices == ["a download was refused: 'report.zip'"]


async def test_dialogs_that_come_before_an_input_belong_to_what_was_before_it() -> None:
    async def dismiss() -> None: ...

    dialog = cast(Dialog, SimpleNamespace(type="alert", message="1", dismiss=dismiss))
    async with anyio.create_task_group() as group:
        events = events_in(group)

        def shows_dialogs() -> None:
            for _ in range(MAX_DIALOGS // 2):
                events._on_dialog(dialog)

        shows_dialogs()
        performed = await performer_of(ScriptedTab(before_input=shows_dialogs), events).perform(CLICK)
    assert f"after {MAX_DIALOGS} dialogs the page can show no more" in performed.notice
