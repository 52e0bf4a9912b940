"""A session's default context, which others made: brought to what the configuration says, and checked.

A context that is made here is told all of this when it is made.
"""

from playwright.async_api import BrowserContext, Page

from browser_workers.chromium.process.launch import Chromium
from browser_workers.chromium.settings import TabSettings
from schemas.errors import PageFailed

_SEEN = "() => [innerWidth, innerHeight, devicePixelRatio]"


async def fit(running: Chromium, settings: TabSettings, page: Page) -> None:
    """Raises `PageFailed` where the page's window has another size all the same, or `BrowserLost`."""
    if not running.is_session:
        return
    width, height = settings.viewport
    await running.call(
        "the viewport", page.set_viewport_size({"width": width, "height": height}), timeout_s=settings.timeout_s
    )
    await running.call("colours", page.emulate_media(color_scheme=settings.config.color_scheme), timeout_s=settings.timeout_s)
    seen = await running.call("the size of a window", page.evaluate(_SEEN), timeout_s=settings.timeout_s)
    if seen != [width, height, 1]:
        raise PageFailed(
            f"the session's window is {seen[0]} x {seen[1]} at {seen[2]} pixels a point: browser_config.viewport_width and "
            f"viewport_height say {width} x {height} at 1"
        )


async def take_over(running: Chromium, settings: TabSettings, context: BrowserContext, kept: Page) -> None:
    """Nothing is downloaded, and pages that a session begins with are closed: nobody sees what goes on in them."""
    if not running.is_session:
        return
    denying = running.protocol.send("Browser.setDownloadBehavior", {"behavior": "deny"})
    await running.call("downloads", denying, timeout_s=settings.timeout_s)
    for page in context.pages:
        if page is not kept:
            await running.call("the end of a page", page.close(), timeout_s=settings.timeout_s)
