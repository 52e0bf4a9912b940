"""A capture that fails or hangs is tried again, each time on firmer ground."""

import base64

import pytest

from browser_workers.chromium.calls import CallRefused, Calls, Json, NoAnswer
from browser_workers.chromium.capture import capture
from browser_workers.chromium.settings import TabSettings
from schemas.browser_config import BrowserConfig
from schemas.errors import PageFailed

pytestmark = pytest.mark.anyio
SETTINGS = TabSettings(BrowserConfig(viewport_width=4, viewport_height=3, screenshot_format="jpeg", jpeg_quality=70))


class ScriptedCalls(Calls):
    """Fails as told, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.timeout_s = 1.0
        self.failures = list(failures)
        self.asked: list[str] = []
        self.params: Json = {}

    async def send(self, method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
        self.asked.append(method)
        if method != "Page.captureScreenshot":
            return {}
        self.params = params or {}
        if self.failures:
            raise self.failures.pop(0)
        return {"data": base64.b64encode(b"screenshot").decode()}

    def forget_session(self) -> None:
        self.asked.append("another session")

    async def answers(self) -> object:
        self.asked.append("answers")
        return None


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_one_call_where_nothing_fails() -> None:
    calls = ScriptedCalls()
    screenshot = await capture(calls, SETTINGS, calls.answers)
    assert (screenshot.data, screenshot.media_type, screenshot.width, screenshot.height) == (b"screenshot", "image/jpeg", 4, 3)
    assert calls.asked == ["Page.captureScreenshot"]
    assert calls.params == {"format": "jpeg", "optimizeForSpeed": True, "fromSurface": False, "quality": 70}


async def test_a_refused_one_is_tried_again_in_front_once_the_page_answers() -> None:
    calls = ScriptedCalls(CallRefused("Not attached to an active page"))
    assert (await capture(calls, SETTINGS, calls.answers)).data == b"screenshot"
    assert calls.asked == ["Page.captureScreenshot", "Page.bringToFront", "answers", "Page.captureScreenshot"]


async def test_one_that_hangs_is_tried_again_in_another_session() -> None:
    calls = ScriptedCalls(NoAnswer("late"))
    assert (await capture(calls, SETTINGS, calls.answers)).data == b"screenshot"
    assert calls.asked == ["Page.captureScreenshot", "another session", "answers", "Page.captureScreenshot"]


async def test_one_that_always_fails_fails_the_page() -> None:
    calls = ScriptedCalls(*[CallRefused("Unable to capture screenshot")] * 4)
    with pytest.raises(PageFailed, match="no screenshot could be taken: Unable to capture"):
        await capture(calls, SETTINGS, calls.answers)
    assert calls.asked.count("Page.captureScreenshot") == 4
