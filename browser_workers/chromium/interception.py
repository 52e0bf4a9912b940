"""The rules for a browser that cannot reach this machine's gate: its requests are judged by their addresses alone.

What this cannot see: where a name leads, and what goes beside HTTP and WebSockets.
"""

from contextlib import suppress

from playwright.async_api import BrowserContext, Route, WebSocketRoute
from playwright.async_api import Error as PlaywrightError

from browser_workers.network.addresses import assumed
from browser_workers.network.refusals import Refusals
from browser_workers.network.rules import Rules, endpoint

_REFUSED = 1008
"""A WebSocket's end for a reason of policy (RFC 6455)."""


class Interception:
    """Satisfies `browser_workers.network.reach.Reach`; ends with its context."""

    plays = False
    egress = None

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._refusals = Refusals()

    async def begin(self, context: BrowserContext) -> None:
        await context.route("**/*", self._judge)
        await context.route_web_socket(self._refuses, self._end)

    def why_blocked(self, host: str) -> str:
        return self._refusals.why(host)

    def close(self) -> None: ...

    def _refuses(self, url: str) -> bool:
        target = endpoint(url)
        if target is None:
            return False
        reason = self._rules.refusal(target.host, target.port, next(iter(assumed(target.host)), None))
        if reason:
            self._refusals.add(target.host, reason)
        return bool(reason)

    async def _judge(self, route: Route) -> None:
        # A page that is gone meanwhile is nobody's failure.
        with suppress(PlaywrightError):
            if self._refuses(route.request.url):
                await route.abort("blockedbyclient")
            else:
                await route.fallback()

    async def _end(self, socket: WebSocketRoute) -> None:
        with suppress(PlaywrightError):
            await socket.close(code=_REFUSED)
