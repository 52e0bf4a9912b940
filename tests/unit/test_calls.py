"""Calls of the DevTools protocol: each within its own deadline, whatever has to be opened for it first."""

from typing import cast

import anyio
import pytest
from playwright.async_api import Page

from browser_workers.chromium.calls import Calls, Json, NoAnswer
from schemas.errors import BrowserError, PageFailed
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio


class HangingPage:
    """A script of it never returns: the browser answers, and no document does. Also its context and its sessions."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    @property
    def context(self) -> "HangingPage":
        return self

    async def new_cdp_session(self, page: Page) -> "HangingPage":
        return self

    async def send(self, method: str, params: Json | None = None) -> Json:
        self.sent.append(method)
        if not method.startswith("Target."):
            await anyio.sleep_forever()
        return {}


async def _why_gone(reason: str) -> BrowserError:
    return PageFailed(reason)


def calls_of(page: HangingPage) -> Calls:
    return Calls(cast(Page, page), _why_gone, timeout_s=0.02)


async def test_a_session_is_opened_within_the_deadline_of_the_call_that_needs_it() -> None:
    page = HangingPage()
    with anyio.fail_after(HANGS_S), pytest.raises(NoAnswer, match=r"^Runtime.evaluate did not return within 0.01 s$"):
        await calls_of(page).send("Runtime.evaluate", timeout_s=0.01)


async def test_what_the_browser_answers_is_asked_of_nothing_else() -> None:
    page = HangingPage()
    with anyio.fail_after(HANGS_S):
        assert await calls_of(page).send("Target.getTargetInfo") == {}
    assert page.sent == ["Target.getTargetInfo"]
