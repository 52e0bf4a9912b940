"""Pages of the web application as a visitor opens them, in a window of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Page, async_playwright, expect

from browser_workers.chromium.process.executable import find_chromium, sandboxed
from tests.deadlines import HANGS_S

_HANGS_MS = 1000 * HANGS_S
expect.set_options(timeout=_HANGS_MS)
_WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
  window.violations.push(`${violatedDirective} ${blockedURI}`));
"""


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(), chromium_sandbox=sandboxed(), timeout=_HANGS_MS
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def opened(browser: Browser, url: str, *, width: int = 1280, dark: bool = False) -> AsyncIterator[Page]:
    """Nothing on the page may fail, or break the page's own policy."""
    context = await browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        ignore_https_errors=True,
    )
    context.set_default_timeout(_HANGS_MS)
    page = await context.new_page()
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    await page.add_init_script(_WATCH)
    await page.goto(url)
    try:
        yield page
        assert failed == []
        assert await page.evaluate("[window.violations, window.pwned ?? null]") == [[], None]
    finally:
        await context.close()
