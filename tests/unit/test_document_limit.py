"""How many documents a page gets, by what Chromium and Playwright say of each in whichever order."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from playwright.async_api import Page, Request

from browser_workers.chromium import document_limit
from browser_workers.chromium.calls import CallRefused, Calls
from browser_workers.chromium.document_limit import MAX_ASKED, MAX_DOCUMENTS, MAX_IN_FRAMES, MAX_IN_ONE_FRAME, DocumentLimit
from browser_workers.chromium.loading import Loading

pytestmark = pytest.mark.anyio
PAGE = SimpleNamespace(_impl_obj=SimpleNamespace(_event_emitter=SimpleNamespace(on=lambda *_: None)))
FRAME = object()


@dataclass(frozen=True, eq=False)
class Asked:
    url: str = "http://pages.test/"
    frame: object = field(default_factory=lambda: PAGE)
    redirected_from: object = None
    resource_type: str = "document"

    def is_navigation_request(self) -> bool:
        return True


@dataclass
class ScriptedCalls:
    """Answers at once; also the page and the session that it speaks of."""

    has_body: bool = True
    refusals: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    main_frame: object = field(default_factory=lambda: PAGE)

    @property
    def page(self) -> "ScriptedCalls":
        return self

    async def open_session(self) -> "ScriptedCalls":
        return self

    def on(self, event: str, heard: Callable[[Any], None]) -> None:
        self.paused = heard

    def remove_listener(self, event: str, heard: Callable[[Any], None]) -> None: ...

    async def call(self, what: str, awaitable: Any) -> Any:
        return await awaitable

    async def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method in self.refusals:
            self.refusals.remove(method)
            raise CallRefused(method)
        self.sent.append(f"{method} {params.get('errorReason') or params.get('expression') or ''}".strip())
        return {"targetInfo": {"targetId": "main"}, "result": {"type": "boolean", "value": not self.has_body}}


@dataclass
class Played:
    limit: DocumentLimit
    loading: Loading
    calls: ScriptedCalls
    notes: list[str]
    given_up: list[str]
    _numbers: Any = field(default_factory=count)

    def asks(self, *, frame: object = PAGE, url: str = "", redirected_from: object = None) -> bool:
        asked = Asked(url or f"http://pages.test/{next(self._numbers)}", frame, redirected_from)
        return self.limit.admits(cast(Request, asked))

    async def exhausts(self) -> None:
        """As many documents as there may be, and the one that tells so."""
        assert [self.asks() for _ in range(MAX_DOCUMENTS + 1)] == [True] * (MAX_DOCUMENTS + 1)
        await anyio.wait_all_tasks_blocked()
        assert "Fetch.enable" in self.calls.sent

    async def comes(self, url: str = "http://pages.test/", *, frame: str = "main", **more: str) -> str:
        """What Chromium is told of a document that waits to be let through."""
        self.calls.sent.clear()
        self.calls.paused({"requestId": "1", "frameId": frame, "request": {"url": url}, **more})
        await anyio.wait_all_tasks_blocked()
        return self.calls.sent[0].removeprefix("Fetch.")


@asynccontextmanager
async def playing(calls: ScriptedCalls | None = None) -> AsyncIterator[Played]:
    calls = calls or ScriptedCalls()
    notes, given_up = list[str](), list[str]()
    async with anyio.create_task_group() as group:
        loading = Loading(cast(Page, calls), "http://pages.test", lambda _: "", loading=False)
        limit = DocumentLimit(cast(Calls, calls), group, notes.append, given_up.append, loading)
        yield Played(limit, loading, calls, notes, given_up)
        group.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def nothing_comes_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_limit, "DOCUMENT_EVERY_S", 1e9)
    for name in ("_ASKED_EVERY_S", "_IN_FRAMES_EVERY_S", "_IN_ONE_FRAME_EVERY_S"):
        monkeypatch.setattr(document_limit, name, 1e9)


async def test_a_page_that_had_its_documents_stays_at_the_last_until_the_next_action() -> None:
    async with playing() as played:
        await played.exhausts()
        assert not played.asks()
        assert await played.comes() == "failRequest Aborted"
        assert played.notes == [
            "the page put one document in the place of another more than 12 times by itself: "
            "it gets one every 1e+09 s until the next action"
        ]
        played.limit.begin_action()
        assert (played.asks(), await played.comes()) == (True, "continueRequest")


@pytest.mark.parametrize("has_body", [True, False])
async def test_a_page_is_not_at_rest_where_an_error_is_to_come(has_body: bool) -> None:
    async with playing(ScriptedCalls(has_body)) as played:
        await played.exhausts()
        assert await played.comes() == "failRequest Aborted"
        assert played.loading.loading is not has_body
        played.loading.on_request(cast(Request, Asked()))
        assert played.loading.loading


async def test_frames_and_what_a_document_redirects_to_come_all_the_same() -> None:
    async with playing() as played:
        await played.exhausts()
        assert played.asks(frame=FRAME)
        assert await played.comes(frame="another") == "continueRequest"
        assert played.asks(redirected_from=Asked())
        assert await played.comes(redirectedRequestId="0") == "continueRequest"


async def test_the_last_one_that_may_come_is_known_whichever_event_is_first() -> None:
    async with playing() as played:
        await played.exhausts()
        played.limit.begin_action()
        for _ in range(MAX_DOCUMENTS):
            assert await played.comes("http://pages.test/again") == "continueRequest"
        assert played.asks(url="http://pages.test/again")
        assert not played.asks(url="http://pages.test/again")


async def test_nothing_comes_while_the_page_has_to_stay() -> None:
    async with playing() as played:
        async with played.limit.closed():
            assert not played.asks()
            assert await played.comes() == "failRequest Aborted"
        assert (played.notes, played.asks(), await played.comes()) == ([], True, "continueRequest")


async def test_a_document_without_a_body_becomes_an_error() -> None:
    async with playing(ScriptedCalls(has_body=False)) as played:
        await played.exhausts()
        await played.comes()
        assert played.calls.sent[-1] == "Runtime.evaluate location.reload()"
        assert (played.asks(), await played.comes()) == (True, "failRequest BlockedByClient")
        assert await played.comes() == "failRequest Aborted"


async def test_where_an_action_leads_is_not_refused_for_a_document_that_left_nothing() -> None:
    async with playing(ScriptedCalls(has_body=False)) as played:
        await played.exhausts()
        await played.comes()
        assert played.calls.sent[-1] == "Runtime.evaluate location.reload()"
        played.limit.begin_action()
        assert (played.asks(), await played.comes()) == (True, "continueRequest")


async def test_what_could_not_be_begun_is_begun_by_the_next_document() -> None:
    async with playing(ScriptedCalls(refusals=["Fetch.enable"])) as played:
        for _ in range(MAX_DOCUMENTS + 1):
            played.asks()
        await anyio.wait_all_tasks_blocked()
        assert (played.calls.refusals, "Fetch.enable" in played.calls.sent) == ([], False)
        assert played.asks()
        await anyio.wait_all_tasks_blocked()
        assert await played.comes() == "failRequest Aborted"


async def test_a_page_that_asks_without_end_for_one_frame_is_given_up() -> None:
    async with playing() as played:
        for _ in range(MAX_IN_ONE_FRAME):
            played.asks(frame=FRAME)
        played.asks(frame=object())
        assert played.given_up == []
        played.asks(frame=FRAME)
        (said,) = played.given_up
        assert said == "the page asks for documents without end: more than 30 in one frame since the last action"


async def test_a_page_that_asks_without_end_for_many_frames_is_given_up() -> None:
    async with playing() as played:
        for _ in range(MAX_IN_FRAMES):
            played.asks(frame=object())
        assert played.given_up == []
        played.asks(frame=object())
        (said,) = played.given_up
        assert said == "the page asks for documents without end: more than 120 in its frames since the last action"


async def test_a_page_that_asks_without_end_for_itself_is_given_up() -> None:
    async with playing() as played:
        for _ in range(MAX_ASKED):
            played.asks()
        assert played.given_up == []
        played.asks()
        assert played.given_up == ["the page asks for documents without end: more than 500 since the last action"]


async def test_an_action_lets_a_frame_turn_anew() -> None:
    async with playing() as played:
        for _ in range(3):
            for _ in range(MAX_IN_ONE_FRAME):
                played.asks(frame=FRAME)
            played.limit.begin_action()
        assert played.given_up == []
