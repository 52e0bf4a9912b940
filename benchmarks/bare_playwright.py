"""The baseline: what a person would write with Playwright alone. One Chromium, a context per session, the same steps."""

import base64
import time
from pathlib import Path

from playwright.async_api import Browser, CDPSession, Error, Page, async_playwright

from benchmarks.browser_schedule import FORMAT, NUM_STEPS, QUALITY, VIEWPORT, Kind, Step, first_page, schedule
from benchmarks.player import Player, Timed
from browser_workers.chromium.process.executable import sandboxed

_TRIES = 20


class BarePlaywright(Player):
    """`png`: Playwright's own screenshots; otherwise JPEG over the DevTools protocol, the cheapest capture there is."""

    def __init__(self, executable: Path, site: str, *, png: bool) -> None:
        self._executable = executable
        self._site = site
        self._png = png

    async def __aenter__(self) -> "BarePlaywright":
        self._playwright = await async_playwright().start()
        self._browser: Browser = await self._playwright.chromium.launch(
            executable_path=self._executable, chromium_sandbox=sandboxed()
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._browser.close()
        await self._playwright.stop()

    async def play(self, episode: int, timed: Timed) -> int:
        width, height = VIEWPORT
        with timed("reset"):
            context = await self._browser.new_context(viewport={"width": width, "height": height})
            page = await context.new_page()
            protocol = await context.new_cdp_session(page)
            await page.goto(f"{self._site}/page/{first_page(episode)}")
            await self._look(page, protocol)
        for step in schedule(episode):
            began = time.monotonic()
            with timed("act"):
                await _act(page, step)
            with timed("observe"):
                await self._look(page, protocol)
            timed.step(step.kind.value, time.monotonic() - began)
        with timed("close"):
            await context.close()
        return NUM_STEPS

    async def _look(self, page: Page, protocol: CDPSession) -> bytes:
        if self._png:
            screenshot = await page.screenshot()
        else:
            screenshot = await _capture(protocol)
        await page.title()
        assert page.url
        return screenshot


async def _capture(protocol: CDPSession) -> bytes:
    asked = {"format": FORMAT, "quality": QUALITY, "optimizeForSpeed": True}
    for last in range(_TRIES):
        try:
            return base64.b64decode((await protocol.send("Page.captureScreenshot", asked))["data"])
        except Error:
            # A page that is just being replaced cannot be captured.
            if last == _TRIES - 1:
                raise
    raise AssertionError("unreachable")


async def _act(page: Page, step: Step) -> None:
    match step.kind:
        case Kind.LINK:
            async with page.expect_navigation():
                await page.mouse.click(step.x, step.y)
        case Kind.PANEL:
            await page.mouse.click(step.x, step.y)
        case Kind.DOWN:
            await page.mouse.move(VIEWPORT[0] / 2, VIEWPORT[1] / 2)
            await page.mouse.wheel(0, VIEWPORT[1])
        case Kind.SEARCH:
            await page.mouse.click(step.x, step.y)
            await page.keyboard.press("ControlOrMeta+A")
            await page.keyboard.press("Delete")
            await page.keyboard.type(step.text)
            async with page.expect_navigation():
                await page.keyboard.press("Enter")
        case Kind.BACK:
            await page.go_back()
