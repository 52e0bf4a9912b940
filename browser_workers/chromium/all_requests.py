"""Has every request of a browser that cannot reach this machine's gate ask before it goes out, also each hop of a redirect and
those of workers: Playwright's own interception sees neither redirects nor shared workers.

Invariant: each is answered, with a refusal where nobody foresaw what came of judging it. One that an episode may not make is
let through where it is somebody else's, or may be: of a frame that nobody knows any more, in a browser in which others have
pages.
"""

from contextlib import suppress
from typing import Protocol

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup
from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.events import listen
from bus.fault import Fault

_log = structlog.get_logger()
_ANSWER_S = 30.0
"""Longer than a page may keep its own frames from being told: a request of others would be refused for it."""
_REFUSED = {"errorReason": "BlockedByClient"}
_EMPTY = "about:blank"
_EVERY = {"patterns": [{"urlPattern": "*"}]}


class Asker(Protocol):
    """The pages of one episode."""

    context_id: str
    """What Chromium calls their context; empty until it is known."""

    def refusal(self, url: str) -> str:
        """Why they may not ask for `url`; empty when they may."""
        ...

    def note_refusal(self, url: str) -> None: ...

    async def has_frame(self, frame: str) -> bool:
        """Whether it is one of theirs, of those that are no targets by themselves."""
        ...


class _Paused(msgspec.Struct):
    class Request(msgspec.Struct):
        url: str

    requestId: str  # noqa: N815
    request: Request
    frameId: str = ""  # noqa: N815
    """Of a worker: what its target is called."""


class _Target(msgspec.Struct):
    targetId: str  # noqa: N815
    type: str
    url: str
    browserContextId: str = ""  # noqa: N815


class AllRequests:
    """Of one browser."""

    def __init__(self, protocol: CDPSession) -> None:
        self._protocol = protocol
        self._askers: set[Asker] = set()
        self._beginning = anyio.Lock()
        self._listens = self._asks = False

    async def add(self, asker: Asker, group: TaskGroup) -> None:
        """From now on its requests are judged. Raises Playwright's errors, to every episode until the browser lets them."""
        self._askers.add(asker)
        async with self._beginning:
            if not self._listens:
                listen(self._protocol, "Fetch.requestPaused", lambda event: group.start_soon(self._answer, event))
                self._listens = True
            if not self._asks:
                await self._protocol.send("Fetch.enable", _EVERY)
                self._asks = True

    def remove(self, asker: Asker) -> None:
        self._askers.discard(asker)

    async def _answer(self, event: dict[str, object]) -> None:
        try:
            refused = await self._is_refused(msgspec.convert(event, _Paused))
        except Exception as error:  # noqa: BLE001 - a bulkhead: one request fails, not the browser with all episodes
            fault = Fault.of(error)
            _log.error("request_not_judged", error=fault.error, place=fault.place, exc_info=error)
            refused = True
        # A page, or the browser, that is gone meanwhile is nobody's failure.
        method, how = ("Fetch.failRequest", _REFUSED) if refused else ("Fetch.continueRequest", {})
        with suppress(PlaywrightError):
            await self._protocol.send(method, {"requestId": event["requestId"], **how})

    async def _is_refused(self, paused: _Paused) -> bool:
        url = paused.request.url
        refusing = {asker for asker in self._askers if asker.refusal(url)}
        refused = await self._refused(paused.frameId, refusing) if refusing else set()
        for asker in refused:
            asker.note_refusal(url)
        return bool(refused)

    async def _refused(self, frame: str, refusing: set[Asker]) -> set[Asker]:
        """Those of `refusing` whose request it is, as far as can be told; none: it goes out."""
        with anyio.move_on_after(_ANSWER_S), suppress(PlaywrightError):
            answer = await self._protocol.send("Target.getTargets", {"filter": [{}]})
            targets = {each.targetId: each for each in msgspec.convert(answer["targetInfos"], list[_Target])}
            if frame in targets:
                return {asker for asker in refusing if asker.context_id == targets[frame].browserContextId}
            # Others begin and end while one is asked.
            for asker in tuple(self._askers):
                if await asker.has_frame(frame):
                    return refusing & {asker}
            # Of a frame that is gone by now, or of one in a page of somebody else's.
            pages = [target for target in targets.values() if target.type == "page" and target.url != _EMPTY]
            is_shared = bool({page.browserContextId for page in pages} - {asker.context_id for asker in self._askers})
            return refusing if refusing == self._askers and not is_shared else set()
        return refusing
