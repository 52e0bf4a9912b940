"""JavaScript in a page: our own in an isolated world that the page can neither see nor forge, a suite's probe in the page's.

Invariants: an expression is tried again when the document changes under it, so that its value is of a document as a whole;
our own waits for the first of a document that was only just shown.
"""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import resources
from itertools import count

import anyio
import msgspec

from browser_workers.chromium.calls import CallRefused, Calls, Json, NoAnswer
from browser_workers.chromium.document_limit import DocumentLimit
from browser_workers.chromium.frames import main_frame, world_in
from browser_workers.chromium.loading import Loading
from schemas.errors import PageFailed

LOAD_CAP_S = 30.0
_TRIES = 4
_TEXT_LIMIT = 400
_PAGE_LIMIT = 20_000
_CHANGE_CAP_S = 3.0
"""How long documents that take each other's place are waited for, in all, and tried again; then the last one has to stay."""
Attempt = Callable[[float], Awaitable[object]]
"""Takes its deadline in seconds."""
_WORLD = "millrace"
_NAME = f"millrace_{secrets.token_hex(8)}"
_PARTS = ("begun.js", "naming.js", "side_effects.js", "effect_observer.js", "settling.js", "reading.js", "barriers.js")
_SCRIPTS = resources.files("browser_workers.chromium") / "scripts"
_BOUNDED = (_SCRIPTS / "bounded.js").read_text()
_CALLS = ", ".join(f"{name}: onceBegun({name})" for name in ("begin", "state", "settle", "text", "barriers"))
_SCRIPT = "\n".join(
    ['(() => {"use strict";', *((_SCRIPTS / part).read_text() for part in _PARTS), f"return {{ {_CALLS} }}; }})()"]
)


class _Result(msgspec.Struct):
    value: object = None


def guarded(expression: str) -> str:
    """An expression that is null where the one given fails."""
    return f"(() => {{ try {{ return ({expression}) ?? null }} catch {{ return null }} }})()"


class Evaluation:
    """Of one page."""

    def __init__(
        self, calls: Calls, loading: Loading, documents: DocumentLimit, give_up: Callable[[str, float], Awaitable[None]]
    ) -> None:
        self._calls = calls
        self._loading = loading
        self._documents = documents
        self._give_up = give_up
        """Ends a navigation that keeps every document from answering."""
        self._frame_id = ""
        self._context_id: int | None = None
        """Of our world in the document that is shown."""
        self._num_documents = 0
        """How many there had been when that world was made."""

    async def own(self, call: str) -> object:
        """The value of a call of our script, or of what its promise comes to."""
        return await self._repeated(lambda timeout_s: self._in_own_world(call, timeout_s))

    async def own_here(self, call: str) -> object:
        """The same of the document that is shown now: raises `CallRefused` when another takes its place."""
        return await self._answered(lambda timeout_s: self._in_own_world(call, timeout_s))

    async def page(self, expression: str, *, most: int = _PAGE_LIMIT) -> object:
        """The value of an expression in the page's own world, with texts of at most `most` characters; null where it fails."""
        bounded = guarded(f"({_BOUNDED})(({expression}) ?? null, {most})")
        return await self._repeated(lambda timeout_s: self._evaluate({"expression": bounded}, timeout_s))

    async def _repeated(self, attempt: Attempt) -> object:
        num_documents = self._loading.num_documents
        until = anyio.current_time() + _CHANGE_CAP_S
        for num_tried in count(1):
            try:
                return await self._answered(attempt)
            except CallRefused as error:
                num_replaced = self._loading.num_documents - num_documents
                if num_replaced and anyio.current_time() >= until:
                    return await self._standing(attempt)
                if num_tried >= _TRIES and num_replaced < num_tried - 1:
                    raise PageFailed(f"the page cannot be read: {error}") from error
                with anyio.move_on_after(until - anyio.current_time()):
                    await self._loading.idle()
        raise AssertionError("the tries never end")

    async def _standing(self, attempt: Attempt) -> object:
        """Of a document that has to stay until it was read; the first one may already be leaving for the second."""
        async with self._documents.closed():
            for _ in range(_TRIES - 1):
                with suppress(CallRefused):
                    return await self._answered(attempt)
            try:
                return await self._answered(attempt)
            except CallRefused as error:
                raise PageFailed(f"the page cannot be read, not even while its document has to stay: {error}") from error

    async def _answered(self, attempt: Attempt) -> object:
        """What comes of it; no document answers while another site is waited for, so that such a wait is given up first."""
        for _ in range(_TRIES):
            navigation, whole_s, num_documents = self._loading.navigation, self._calls.timeout_s, self._loading.num_documents
            cap_s = whole_s if navigation is None else min(LOAD_CAP_S, whole_s)
            try:
                return await attempt(cap_s)
            except CallRefused:
                self._context_id = None
                raise
            except NoAnswer as error:
                if (navigation := self._loading.navigation) is not None:
                    await self._give_up(navigation.url, cap_s)
                elif self._loading.num_documents != num_documents:
                    # Passed on from document to document, each of which left before it heard the question.
                    self._context_id = None
                    raise CallRefused("its document left before it answered") from error
                else:
                    raise
        raise NoAnswer(f"the page was leaving for elsewhere whenever it was asked, {_TRIES} times")

    async def _in_own_world(self, call: str, timeout_s: float) -> object:
        expression = f"{_NAME}.{call}"
        if self._context_id is None or self._num_documents != self._loading.num_documents:
            self._num_documents = self._loading.num_documents
            self._context_id = await self._new_world()
            expression = f"globalThis.{_NAME} ??= {_SCRIPT};\n{expression}"
        params: Json = {"expression": expression, "contextId": self._context_id, "awaitPromise": True}
        return await self._evaluate(params, timeout_s)

    async def _new_world(self) -> int:
        if not self._frame_id:
            self._frame_id = await main_frame(self._calls.send)
        return await world_in(self._calls.send, self._frame_id, _WORLD)

    async def _evaluate(self, params: Json, timeout_s: float) -> object:
        answer = await self._calls.send("Runtime.evaluate", {**params, "returnByValue": True}, timeout_s=timeout_s)
        if "exceptionDetails" in answer:
            raise CallRefused(f"its script failed: {str(answer['exceptionDetails'])[:_TEXT_LIMIT]}")
        return msgspec.convert(answer["result"], _Result).value
