"""Recording listens only where there is a log, and nothing that comes of a request reaches anybody else."""

from collections.abc import Callable
from typing import Any, cast

import anyio
import pytest
from playwright.async_api import BrowserContext
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.recording import Recording
from browser_workers.har.log import NetworkLog
from bus.chain import EpisodeChain
from bus.memory import MemoryBus
from bus.subjects import Subjects
from tests import builders

pytestmark = pytest.mark.anyio


class Context:
    def __init__(self) -> None:
        self.heard: dict[str, Callable[[Any], None]] = {}

    def on(self, event: str, listener: Callable[[Any], None]) -> None:
        assert event not in self.heard
        self.heard[event] = listener


class Asked:
    """A request; `fails` is what Playwright raises when it is asked more about it."""

    resource_type = "document"
    method = "GET"
    failure = None
    post_data_buffer = None

    def __init__(self, fails: Exception, url: str = "http://a/") -> None:
        self.url = url
        self.headers: dict[str, str] = {"accept": "text/html"}
        self.timing = {"startTime": 1000.0, "responseEnd": 5.0}
        self._fails = fails

    async def all_headers(self) -> dict[str, str]:
        raise self._fails


def missing(log: NetworkLog) -> tuple[str, ...]:
    subjects = Subjects(builders.RUN)
    chain = EpisodeChain(MemoryBus(subjects), subjects, builders.task(), 1, 0)
    return log.record(chain, 0).summary.missing


async def test_nothing_is_listened_to_without_a_log_and_once_with_several() -> None:
    context = Context()
    async with anyio.create_task_group() as group:
        recording = Recording(cast(BrowserContext, context), group)
        recording.begin(None)
        assert context.heard == {}
        recording.begin(NetworkLog(9, 9_999))
        recording.begin(NetworkLog(9, 9_999))
        assert set(context.heard) == {"request", "requestfinished", "requestfailed"}


@pytest.mark.parametrize("error", [PlaywrightError("closed"), ValueError("nobody foresaw it")])
async def test_what_the_browser_does_not_say_is_missing_and_ends_nothing(error: Exception) -> None:
    context, log = Context(), NetworkLog(9, 9_999)
    async with anyio.create_task_group() as group:
        recording = Recording(cast(BrowserContext, context), group)
        recording.begin(log)
        asked = Asked(error)
        context.heard["request"](asked)
        context.heard["requestfinished"](asked)
        await log.settled(60.0)
    assert missing(log) == ("1 requests of which the browser did not say what they came to",)


async def test_pictures_and_what_is_not_on_the_web_are_no_entries() -> None:
    context, log = Context(), NetworkLog(9, 9_999)
    async with anyio.create_task_group() as group:
        Recording(cast(BrowserContext, context), group).begin(log)
        picture = Asked(ValueError())
        picture.resource_type = "image"
        for asked in (picture, Asked(ValueError(), "data:text/html,x"), Asked(ValueError(), "blob:http://a/1")):
            context.heard["request"](asked)
            context.heard["requestfinished"](asked)
    subjects = Subjects(builders.RUN)
    record = log.record(EpisodeChain(MemoryBus(subjects), subjects, builders.task(), 1, 0), 0)
    assert (record.summary.num_entries, record.summary.missing) == (0, ())
