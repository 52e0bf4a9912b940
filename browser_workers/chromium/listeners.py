"""Finds the elements that a page's scripts listen on for clicks. No script can tell: the browser says it.

Invariant: an element is told to the world of `elements.js` once a document.
"""

import anyio
import msgspec

from browser_workers.chromium.calls import CallRefused, Json
from browser_workers.chromium.frames import Send
from browser_workers.chromium.isolated_world import IsolatedWorld

_CLICKS = frozenset({"click", "dblclick", "mousedown", "mouseup", "pointerdown", "pointerup", "contextmenu"})
_MOST = 5000
"""Listeners, above which a document is asked once: the answer has all of them every time."""
_PATIENCE_S = 10.0
_MOST_LATE = 2
"""Times that a document takes longer before it is asked no more: once, the machine may have stood still."""
_MOST_AT_ONCE = 200
"""Elements told in one reading; the rest follow in the next, where it asks again."""


class _Listener(msgspec.Struct):
    type: str
    backendNodeId: int = 0  # noqa: N815


class Listeners:
    """Of the main document that `send` speaks to."""

    def __init__(self, send: Send, world: IsolatedWorld) -> None:
        self._send = send
        self._world = world
        self._context: int | None = None
        self._document = ""
        self._known: set[int] = set()
        self._enough = False
        """Of this document no more is asked for."""
        self._num_late = 0
        """Times that it took too long."""

    async def learn(self) -> None:
        """Raises `PageFailed`."""
        await self._world.value("0")
        try:
            with anyio.move_on_after(_PATIENCE_S) as patience:
                await self._learn()
        except CallRefused:
            # Another document took this one's place: the next reading learns about that.
            self._context = None
        self._num_late += patience.cancelled_caught

    async def _learn(self) -> None:
        if self._context != self._world.context:
            self._known.clear()
            self._document = ""
            self._enough = False
            self._num_late = 0
            self._context = self._world.context
        if self._enough or self._num_late >= _MOST_LATE:
            return
        if not self._document:
            # `document` cannot be redefined by a page.
            answer = await self._send("Runtime.evaluate", {"expression": "document"})
            result = msgspec.convert(answer["result"], dict[str, object])
            self._document = str(result.get("objectId", ""))
        params: Json = {"objectId": self._document, "depth": -1, "pierce": True}
        answer = await self._send("DOMDebugger.getEventListeners", params)
        found = msgspec.convert(answer["listeners"], list[_Listener])
        self._enough = len(found) > _MOST
        nodes = dict.fromkeys(each.backendNodeId for each in found if each.type in _CLICKS)
        fresh = [node for node in nodes if node and node not in self._known][:_MOST_AT_ONCE]
        if fresh:
            await self._world.give("(...elements) => millraceElements.listen(...elements)", fresh)
            self._known.update(fresh)
