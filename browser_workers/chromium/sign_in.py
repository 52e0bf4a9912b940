"""Has a browser learn the password of an episode's gate.

Chromium remembers what it has once shown to a proxy for everything that the context sends, so this is done once, on a page
that nothing was opened in yet. Playwright's own way would answer a site that asks for a password too, and would have every
request of the episode pass its driver.
"""

from typing import Any

import anyio
from playwright.async_api import Page

from browser_workers.network.caller import SIGN_IN_HOST
from browser_workers.network.gate import Gate

_ADDRESS = f"http://{SIGN_IN_HOST}/"
_ASK = "address => { fetch(address, {mode: 'no-cors'}).catch(() => 0) }"
_BOTH_STAGES = [{"urlPattern": f"{_ADDRESS}*", "requestStage": stage} for stage in ("Request", "Response")]
_MAX_EVENTS = 16


async def sign_in(page: Page, gate: Gate) -> None:
    """Returns when the browser was let in, or cannot be: `gate.signed_in` says which. Raises Playwright's errors."""
    protocol = await page.context.new_cdp_session(page)
    sender, events = anyio.create_memory_object_stream[tuple[bool, dict[str, Any]]](_MAX_EVENTS)
    with sender, events:
        protocol.on("Fetch.requestPaused", lambda event: sender.send_nowait((False, event)))
        protocol.on("Fetch.authRequired", lambda event: sender.send_nowait((True, event)))
        await protocol.send("Fetch.enable", {"handleAuthRequests": True, "patterns": _BOTH_STAGES})
        await page.evaluate(_ASK, _ADDRESS)
        answered = False
        async for is_asked, event in events:
            request = {"requestId": event["requestId"]}
            if is_asked:
                response = {"response": "CancelAuth" if answered else "ProvideCredentials"}
                answered = True
                known = {**response, "username": gate.user, "password": gate.password}
                await protocol.send("Fetch.continueWithAuth", {**request, "authChallengeResponse": known})
                continue
            await protocol.send("Fetch.continueRequest", request)
            if "responseStatusCode" in event or "responseErrorReason" in event:
                break
        await protocol.detach()
