"""Screenshots of a page's viewport, encoded once, in the browser. A capture that fails or hangs is tried again."""

import base64
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from browser_workers.chromium.calls import CallRefused, Calls, Json, NoAnswer
from browser_workers.chromium.settings import TabSettings
from schemas.errors import PageFailed
from schemas.messages import Screenshot

_TRIES = 4
_CAPTURE_S = 10.0


async def capture(
    calls: Calls, settings: TabSettings, answers: Callable[[], Awaitable[object]], *, jpeg_quality: int = 0
) -> Screenshot:
    """A JPEG has the configured quality, or `jpeg_quality`.

    `answers` returns once the page's renderer has answered a call. Raises `PageFailed` or `BrowserLost`.
    """
    config, (width, height) = settings.config, settings.viewport
    # From the window, not from the page's own surface: Chromium asks once more for a copy of a surface that has gone, and if
    # the page's process has gone too it ends itself then, with all pages in it.
    params: Json = {"format": config.screenshot_format, "optimizeForSpeed": True, "fromSurface": False}
    if config.screenshot_format == "jpeg":
        params["quality"] = jpeg_quality or config.jpeg_quality
    for last in range(_TRIES):
        try:
            answer = await calls.send("Page.captureScreenshot", params, timeout_s=min(_CAPTURE_S, calls.timeout_s))
        except (CallRefused, NoAnswer) as error:
            if last == _TRIES - 1:
                raise PageFailed(f"no screenshot could be taken: {error}") from error
            await _recover(calls, answers, hung=isinstance(error, NoAnswer))
            continue
        data = base64.b64decode(msgspec.convert(answer["data"], str))
        return Screenshot(data=data, media_type=f"image/{config.screenshot_format}", width=width, height=height)
    raise AssertionError("every last try returns or raises")


async def _recover(calls: Calls, answers: Callable[[], Awaitable[object]], *, hung: bool) -> None:
    if hung:
        calls.forget_session()
    else:
        # Only the page in front is painted.
        with suppress(CallRefused, NoAnswer):
            await calls.send("Page.bringToFront")
    # Until the renderer has answered once more, the next capture would fail the same way.
    await answers()
