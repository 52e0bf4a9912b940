"""A script of ours in a document, in a world of its own: it shares the document with the page and none of the page's objects.

Invariant: a document has at most one such world a name. The page can neither see it nor change what the script computes with.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import msgspec

from browser_workers.chromium.calls import CallRefused, Json
from browser_workers.chromium.frames import Send, frame_tree, world_in
from schemas.errors import BrowserError, PageFailed

_SCRIPTS = Path(__file__).parent / "scripts"
_TRIES = 3


class Node(msgspec.Struct):
    backendNodeId: int  # noqa: N815
    frameId: str = ""  # noqa: N815
    """Of the document in a frame."""


class _Answer(msgspec.Struct):
    class Result(msgspec.Struct):
        value: object = None
        objectId: str = ""  # noqa: N815

    result: Result = msgspec.field(default_factory=Result)
    exceptionDetails: Json | None = None  # noqa: N815


class IsolatedWorld:
    """Of the document that a frame shows, whichever that is by now; of the main frame if none is named."""

    def __init__(self, send: Send, name: str, frame: str = "") -> None:
        self._send = send
        self._frame = frame
        self._name = name
        self._source = (_SCRIPTS / f"{name}.js").read_text()
        self.context: int | None = None
        """Chromium's number of the world; a new document has a new one."""

    async def value(self, expression: str) -> object:
        """What an expression comes to, in this document or, if that is gone, in the one that took its place.

        Raises:
            PageFailed: there is no document that answers.
        """
        return (await self._evaluate(expression, by_value=True)).value

    async def value_here(self, expression: str) -> object:
        """The same, only in the document that was there last. Raises `CallRefused` when that is gone."""
        if self.context is None:
            raise CallRefused("there was no document yet")
        return (await self._evaluate_in(self.context, expression, by_value=True)).value

    async def described(self, expression: str) -> dict[int, Node]:
        """What Chromium knows of the nodes in a list that an expression gives, by position. Raises `CallRefused`."""
        listed = (await self._evaluate(expression, by_value=False)).objectId
        found = await self._send("Runtime.getProperties", {"objectId": listed, "ownProperties": True})
        objects = {
            int(each.name): each.value.objectId
            for each in msgspec.convert(found["result"], list[_Property])
            if each.name.isdigit() and each.value is not None and each.value.objectId
        }
        nodes: dict[int, Node] = {}

        async def describe(position: int, object_id: str) -> None:
            node = (await self._send("DOM.describeNode", {"objectId": object_id}))["node"]
            nodes[position] = msgspec.convert(node, Node)

        await _all(partial(describe, position, object_id) for position, object_id in objects.items())
        await self._release()
        return nodes

    async def give(self, function: str, backend_nodes: list[int]) -> None:
        """Calls a function with elements that Chromium knows by number; those that are gone are left out."""
        objects: list[str] = []

        async def resolve(node: int) -> None:
            params: Json = {"backendNodeId": node, "executionContextId": self.context, "objectGroup": self._name}
            with suppress(CallRefused):
                resolved = await self._send("DOM.resolveNode", params)
                objects.append(msgspec.convert(resolved["object"], _Answer.Result).objectId)

        await _all(partial(resolve, node) for node in backend_nodes)
        arguments: list[Json] = [{"objectId": each} for each in objects]
        params: Json = {"functionDeclaration": function, "executionContextId": self.context, "arguments": arguments}
        await self._send("Runtime.callFunctionOn", params)
        await self._release()

    async def _release(self) -> None:
        await self._send("Runtime.releaseObjectGroup", {"objectGroup": self._name})

    async def _evaluate(self, expression: str, *, by_value: bool) -> _Answer.Result:
        for last in range(_TRIES):
            try:
                context = self.context or await self._enter()
                return await self._evaluate_in(context, expression, by_value=by_value)
            except CallRefused as error:
                # Its document is gone.
                self.context = None
                if last == _TRIES - 1:
                    raise PageFailed(f"the page cannot be read: {error}") from error
        raise AssertionError("unreachable")

    async def _enter(self) -> int:
        frame = self._frame or (await frame_tree(self._send)).frame.id
        context = await world_in(self._send, frame, f"millrace-{self._name}")
        await self._evaluate_in(context, f"{self._source}; 0", by_value=True)
        self.context = context
        return context

    async def _evaluate_in(self, context: int, expression: str, *, by_value: bool) -> _Answer.Result:
        params: Json = {
            "expression": expression,
            "contextId": context,
            "returnByValue": by_value,
            "awaitPromise": by_value,
            "objectGroup": self._name,
        }
        answer = msgspec.convert(await self._send("Runtime.evaluate", params), _Answer)
        if answer.exceptionDetails is not None:
            raise PageFailed(f"the page cannot be read: {str(answer.exceptionDetails.get('exception', ''))[:300]}")
        return answer.result


async def _all(calls: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Side by side: the browser answers them one after the other. Raises what the first that failed has raised."""
    failures: list[BrowserError] = []

    async def one(call: Callable[[], Awaitable[None]]) -> None:
        try:
            await call()
        except BrowserError as error:
            failures.append(error)

    async with anyio.create_task_group() as group:
        for call in calls:
            group.start_soon(one, call)
    if failures:
        raise failures[0]


class _Property(msgspec.Struct):
    name: str
    value: _Answer.Result | None = None
