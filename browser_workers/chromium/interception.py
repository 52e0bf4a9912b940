"""The rules for a browser that cannot reach this machine's gate: its requests are judged by their addresses alone.

What this cannot see: where a name leads, what goes beside HTTP and WebSockets, and WebSockets of workers.
"""

from collections.abc import Iterator
from contextlib import suppress

from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Route, WebSocketRoute
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.all_requests import AllRequests
from browser_workers.chromium.frames import FrameTree, frame_tree
from browser_workers.network.addresses import assumed
from browser_workers.network.refusals import Refusals
from browser_workers.network.rules import Rules, endpoint

_REFUSED = 1008
"""A WebSocket's end for a reason of policy (RFC 6455)."""


class Interception:
    """Satisfies `browser_workers.network.reach.Reach`; ends with its context."""

    plays = False
    egress = None

    def __init__(self, rules: Rules, context: BrowserContext, requests: AllRequests) -> None:
        """`requests`: of the whole browser."""
        self.context_id = ""
        self._rules = rules
        self._refusals = Refusals()
        self._context = context
        self._requests = requests
        self._frames: set[str] = set()
        """Of the context, as far as anybody asked."""

    async def begin(self, group: TaskGroup) -> None:
        """Raises Playwright's errors."""
        await self._context.route("**/*", self._judge)
        await self._context.route_web_socket(self._refuses, self._end)
        await self._requests.add(self, group)

    def why_blocked(self, host: str) -> str:
        return self._refusals.why(host)

    def close(self) -> None:
        self._requests.remove(self)

    def refusal(self, url: str) -> str:
        target = endpoint(url)
        return self._rules.refusal(target.host, target.port, next(iter(assumed(target.host)), None)) if target else ""

    def note_refusal(self, url: str) -> None:
        if target := endpoint(url):
            self._refusals.add(target.host, self.refusal(url))

    async def has_frame(self, frame: str) -> bool:
        if frame not in self._frames:
            for page in self._context.pages:
                session = await self._context.new_cdp_session(page)
                self._frames |= set(_frames(await frame_tree(session.send)))
                await session.detach()
        return frame in self._frames

    def _refuses(self, url: str) -> bool:
        if refused := bool(self.refusal(url)):
            self.note_refusal(url)
        return refused

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


def _frames(tree: FrameTree) -> Iterator[str]:
    yield tree.frame.id
    for child in tree.childFrames:
        yield from _frames(child)
