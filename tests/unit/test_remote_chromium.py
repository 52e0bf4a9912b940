"""What is said of a browser that somebody else runs is known, however slow it is; what is not known is asked again."""

from typing import cast

import anyio
import pytest
from playwright.async_api import Browser, CDPSession, Page, Playwright
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.process import remote
from browser_workers.chromium.process.driver import Driver
from browser_workers.chromium.process.launch import Chromium
from browser_workers.network.gate import Gate
from browser_workers.providers.provider import Place
from schemas.errors import BrowserLost, PageFailed
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
HERE = "http://127.0.0.1:9222"


class Elsewhere:
    """Browser, context and DevTools in one: each call is answered at once."""

    async def new_context(self, proxy: dict[str, str]) -> "Elsewhere":
        return self

    async def new_page(self) -> Page:
        return cast("Page", None)

    async def new_cdp_session(self, page: Page) -> CDPSession:
        return cast("CDPSession", None)

    async def close(self) -> None: ...

    async def send(self, method: str) -> None: ...


def running() -> Chromium:
    return Chromium(cast("Browser", Elsewhere()), cast("CDPSession", Elsewhere()))


async def test_only_a_request_that_ended_says_that_the_gate_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(page: Page, protocol: CDPSession, gate: Gate) -> None: ...

    async def crashed(page: Page, protocol: CDPSession, gate: Gate) -> None:
        raise PlaywrightError("Page crashed")

    monkeypatch.setattr(remote, "sign_in", refused)
    assert not await remote._reaches_gates(running(), HERE)
    monkeypatch.setattr(remote, "sign_in", crashed)
    with pytest.raises(PageFailed, match="Page crashed"):
        await remote._reaches_gates(running(), HERE)


async def test_a_browser_that_is_lost_while_it_is_tried_ends_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = anyio.Event()

    async def unanswered(page: Page, protocol: CDPSession, gate: Gate) -> None:
        asked.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(remote, "sign_in", unanswered)
    chromium = running()

    async def lose() -> None:
        await asked.wait()
        chromium.lose("killed")

    async with anyio.create_task_group() as group:
        group.start_soon(lose)
        with anyio.fail_after(HANGS_S):
            with pytest.raises(BrowserLost, match="killed"):
                await remote._reaches_gates(chromium, HERE)


async def test_each_attempt_to_connect_has_twice_as_long_as_the_one_before() -> None:
    patience_ms: list[float] = []

    class Chromiums:
        async def connect_over_cdp(self, address: str, *, timeout: float, **options: object) -> Browser:
            patience_ms.append(timeout)
            if len(patience_ms) == 4:
                trying.cancel()
            raise PlaywrightError("Timeout exceeded")

    class Started:
        chromium = Chromiums()

    with anyio.CancelScope() as trying:
        await remote._connect(Driver(), cast("Playwright", Started()), Place("ws://127.0.0.1:9222/devtools/browser/1"), 30.0)
    assert patience_ms == [10_000, 20_000, 30_000, 30_000]
