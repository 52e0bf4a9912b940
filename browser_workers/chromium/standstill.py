"""Keeps a page at the document that it shows, for one that takes another faster than it can be asked."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec

from browser_workers.chromium.calls import CallRefused, Calls, Json
from browser_workers.chromium.events import listen
from browser_workers.chromium.frames import frame_tree
from bus.background import background
from schemas.errors import BrowserError


class _Paused(msgspec.Struct):
    requestId: str  # noqa: N815
    frameId: str  # noqa: N815


@asynccontextmanager
async def standstill(calls: Calls) -> AsyncIterator[None]:
    """While the context is open, whatever asks for another document is refused; one that is coming already still comes.

    What it asked for is not asked for again.
    """
    session = await calls.open_session()
    main_frame = (await frame_tree(calls.send)).frame.id
    paused, requests = anyio.create_memory_object_stream[_Paused](math.inf)

    async def decide() -> None:
        async for request in requests:
            named: Json = {"requestId": request.requestId}
            with suppress(CallRefused):
                if request.frameId == main_frame:
                    await calls.send("Fetch.failRequest", {**named, "errorReason": "Aborted"})
                else:
                    await calls.send("Fetch.continueRequest", named)

    end = listen(session, "Fetch.requestPaused", lambda event: paused.send_nowait(msgspec.convert(event, _Paused)))
    try:
        async with background(decide):
            await calls.send("Fetch.enable", {"patterns": [{"resourceType": "Document"}]})
            yield
    finally:
        end()
        with anyio.CancelScope(shield=True), suppress(BrowserError):
            await calls.send("Fetch.disable")
        paused.close()
        requests.close()
