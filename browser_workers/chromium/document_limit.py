"""Bounds how fast a page puts one document in the place of another.

Invariants: behind an action a page gets a number of documents at once, and from then on one now and again, however fast it
asks, so that what it shows stays for long enough to be read. A page that asks for more than the browser can refuse, for
itself or for its frames, is given up before the browser has no time left for the others.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from anyio.abc import TaskGroup
from playwright.async_api import CDPSession, Frame, Request

from browser_workers.chromium.calls import Calls, Json
from browser_workers.chromium.events import listen
from browser_workers.chromium.frames import main_frame
from browser_workers.chromium.loading import Loading
from schemas.errors import BrowserError

MAX_DOCUMENTS = 12
"""Of the page itself behind one action: more than any chain of pages that lead on to each other."""
DOCUMENT_EVERY_S = 5.0
"""A page that shows itself anew at intervals like this one is not held up."""
MAX_ASKED = 500
"""Documents of the page itself that may be asked for behind one action, refused or not."""
_ASKED_EVERY_S = 0.04
MAX_IN_FRAMES, MAX_IN_ONE_FRAME = 120, 30
"""The same of its frames, which are not refused. Each costs the browser, its driver and this process more than it costs the
page, so that all of them are behind before the number is seen: it has to be small."""
_IN_FRAMES_EVERY_S, _IN_ONE_FRAME_EVERY_S = 0.1, 1.0
_STAYS_WITHOUT_BODY = """new Promise((resolve) => {
  const look = () => document.body ? resolve(false) : document.readyState === 'complete' && resolve(true);
  document.addEventListener('readystatechange', look);
  look();
})"""
_DOCUMENTS: Json = {"patterns": [{"resourceType": "Document"}]}


class _Paused(msgspec.Struct):
    """A document that was asked for, and comes when it is told to."""

    class Request(msgspec.Struct):
        url: str

    requestId: str  # noqa: N815
    frameId: str  # noqa: N815
    request: Request
    redirectedRequestId: str = ""  # noqa: N815


class _Allowance:
    """Of `most` documents at once, and of another one every `every_s` seconds."""

    def __init__(self, most: int, every_s: float) -> None:
        self._most, self._every_s = most, every_s
        self.fill()

    def fill(self) -> None:
        self._left, self._at = float(self._most), time.monotonic()

    @property
    def is_left(self) -> bool:
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._at) / self._every_s)
        self._at = now
        return self._left >= 1

    def take(self) -> bool:
        if not self.is_left:
            return False
        self._left -= 1
        return True


class DocumentLimit:
    """Of one page. Nothing is in the way of its documents until it has had as many as it may."""

    def __init__(
        self,
        calls: Calls,
        group: TaskGroup,
        note: Callable[[str], None],
        give_up: Callable[[str], None],
        loading: Loading,
    ) -> None:
        """`note` tells the policy, and `give_up` why the page is of no more use."""
        self._calls = calls
        self._group = group
        self._note, self._give_up = note, give_up
        self._loading = loading
        self._shown = _Allowance(MAX_DOCUMENTS, DOCUMENT_EVERY_S)
        """What may be shown by the page itself."""
        self._asked_for = _Allowance(MAX_ASKED, _ASKED_EVERY_S)
        self._in_frames = _Allowance(MAX_IN_FRAMES, _IN_FRAMES_EVERY_S)
        self._in_frame: dict[Frame, _Allowance] = {}
        self._main_frame = ""
        self._lock = anyio.Lock()
        self._asked = self._intercepts = False
        """Whether documents shall ask before they come, and do."""
        self._num_closed = 0
        self._is_seen = self._leaves_nothing = False
        """Whether it is known that the document that has to stay can be seen; whether it cannot."""
        self._admitted = ""
        """Address of the document that was let through last."""

    def begin_action(self) -> None:
        """The page may have as many again, and where the policy leads it is never refused."""
        self._leaves_nothing = False
        self._shown.fill()
        self._asked_for.fill()
        self._in_frames.fill()
        self._in_frame.clear()

    def admits(self, request: Request) -> bool:
        """Whether a document that was asked for comes, as far as is known; called once for each request of the page."""
        if not request.is_navigation_request() or request.redirected_from is not None:
            return True
        if request.frame != self._calls.page.main_frame:
            self._count(self._in_frames, MAX_IN_FRAMES, " in its frames")
            in_frame = self._in_frame.setdefault(request.frame, _Allowance(MAX_IN_ONE_FRAME, _IN_ONE_FRAME_EVERY_S))
            self._count(in_frame, MAX_IN_ONE_FRAME, " in one frame")
            return True
        self._count(self._asked_for, MAX_ASKED)
        if self._intercepts:
            let_through, self._admitted = request.url == self._admitted, ""
            return let_through or self._leaves_nothing or (self._shown.is_left and not self._num_closed)
        if not self._shown.take() and not self._asked:
            self._asked = True
            self._group.start_soon(self._begin)
        return True

    def _count(self, allowance: _Allowance, most: int, where: str = "") -> None:
        if not allowance.take():
            self._give_up(f"the page asks for documents without end: more than {most}{where} since the last action")

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """While the context is open the page stays at its document; one that is coming already still comes.

        What it asked for is not asked for again.
        """
        self._num_closed += 1
        try:
            await self._intercept()
            yield
        finally:
            self._num_closed -= 1

    async def _begin(self) -> None:
        try:
            await self._intercept()
        except BrowserError:
            # Whoever uses the page is told; its next document tries again.
            self._asked = False

    async def _intercept(self) -> None:
        async with self._lock:
            if self._intercepts:
                return
            session = await self._calls.open_session()
            self._main_frame = await main_frame(self._calls.send)
            end = listen(
                session,
                "Fetch.requestPaused",
                lambda event: self._group.start_soon(self._decide, session, msgspec.convert(event, _Paused)),
            )
            try:
                await self._calls.call("Fetch.enable", session.send("Fetch.enable", _DOCUMENTS))
                self._intercepts = True
            finally:
                if not self._intercepts:
                    end()

    async def _decide(self, session: CDPSession, paused: _Paused) -> None:
        async def answer(method: str, **how: object) -> None:
            await self._calls.call(method, session.send(method, {"requestId": paused.requestId, **how}))

        with suppress(BrowserError):
            if paused.frameId != self._main_frame or paused.redirectedRequestId or self._may_come(paused):
                await answer("Fetch.continueRequest")
            elif self._leaves_nothing:
                self._leaves_nothing = False
                await answer("Fetch.failRequest", errorReason="BlockedByClient")
            else:
                await self._refuse(answer("Fetch.failRequest", errorReason="Aborted"))

    async def _refuse(self, refusal: Awaitable[None]) -> None:
        """The page is not at rest before it is known whether an error takes the place of its document."""
        is_seen, self._is_seen = self._is_seen, True
        if not is_seen:
            self._loading.refused()
        try:
            await refusal
            if not is_seen:
                await self._show()
        finally:
            if not self._leaves_nothing:
                self._loading.stay()

    def _may_come(self, paused: _Paused) -> bool:
        if self._num_closed or self._leaves_nothing:
            return False
        if self._shown.take():
            self._is_seen = False
            self._admitted = paused.request.url
            return True
        self._note(
            f"the page put one document in the place of another more than {MAX_DOCUMENTS} times by itself: "
            f"it gets one every {DOCUMENT_EVERY_S:g} s until the next action"
        )
        return False

    async def _show(self) -> None:
        """Chromium never paints a document that asked for another one before it had a body: an error takes its place.

        One that is still coming may get its body yet.
        """
        answer = await self._calls.send("Runtime.evaluate", {"expression": _STAYS_WITHOUT_BODY, "awaitPromise": True})
        if answer.get("result") == {"type": "boolean", "value": True}:
            self._leaves_nothing = True
            await self._calls.send("Runtime.evaluate", {"expression": "location.reload()"})
