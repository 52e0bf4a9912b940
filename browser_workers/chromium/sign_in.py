"""Has a browser learn the password of an episode's gate.

Chromium remembers what it has once shown to a proxy for everything that the context sends, so this is done once, on a page
that nothing was opened in yet. Playwright's own way would answer a site that asks for a password too, and would have every
request of the episode pass its driver.
"""

from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from playwright.async_api import CDPSession, Page

from browser_workers.chromium.events import listen
from browser_workers.network.caller import SIGN_IN_HOST
from browser_workers.network.gate import Gate

_ADDRESS = f"http://{SIGN_IN_HOST}/"
_ASK = "address => { fetch(address, {mode: 'no-cors'}).catch(() => 0) }"
_BOTH_STAGES = [{"urlPattern": f"{_ADDRESS}*", "requestStage": stage} for stage in ("Request", "Response")]
_MAX_EVENTS = 16


async def sign_in(page: Page, protocol: CDPSession, gate: Gate) -> None:
    """Returns when the browser was let in, or cannot be: `gate.signed_in` says which. Raises Playwright's errors."""
    sender, events = anyio.create_memory_object_stream[tuple[bool, dict[str, Any]]](_MAX_EVENTS)

    def on_paused(event: dict[str, Any]) -> None:
        sender.send_nowait((False, event))

    def on_asked(event: dict[str, Any]) -> None:
        sender.send_nowait((True, event))

    with sender, events:
        endings = listen(protocol, "Fetch.requestPaused", on_paused), listen(protocol, "Fetch.authRequired", on_asked)
        try:
            await protocol.send("Fetch.enable", {"handleAuthRequests": True, "patterns": _BOTH_STAGES})
            await page.evaluate(_ASK, _ADDRESS)
            await _answer(protocol, events, gate)
            await protocol.send("Fetch.disable")
        finally:
            # One that is given up is still answered.
            for end in endings:
                end()


async def _answer(protocol: CDPSession, events: MemoryObjectReceiveStream[tuple[bool, dict[str, Any]]], gate: Gate) -> None:
    """Until the request is over."""
    was_asked = False
    async for is_asked, event in events:
        request = {"requestId": event["requestId"]}
        if is_asked:
            response = (
                {"response": "CancelAuth"}
                if was_asked
                else {"response": "ProvideCredentials", "username": gate.user, "password": gate.password}
            )
            was_asked = True
            await protocol.send("Fetch.continueWithAuth", {**request, "authChallengeResponse": response})
            continue
        await protocol.send("Fetch.continueRequest", request)
        if "responseStatusCode" in event or "responseErrorReason" in event:
            return
