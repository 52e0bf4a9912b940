"""The section of live episodes: the page, what it is told each second, and one episode while it runs.

A reader gets the whole first and then differences, each computed when the one before has left: one that reads slowly gets
fewer and larger ones, and nothing waits for it in memory.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bus.ports import Bus
from bus.server_time import ServerClock
from bus.subjects import Subjects
from ops.monitor.alerts.alert import Alert
from ops.monitor.snapshot import Updates
from ops.monitor.state import MonitorState
from ops.web.answers import explaining, json_answer, named, screenshot_answer
from ops.web.application import Section, Shell
from ops.web.live_episode import live_episode, screenshot_at
from schemas.config import Config

LABEL, PATH = "Live", "/live"
_EVERY_S = 1.0
_AGAIN_MS = 1000
"""After which a browser that lost the stream asks again."""


class Watched(Protocol):
    """A run as it stands: `MonitorWatch`."""

    @property
    def state(self) -> MonitorState: ...

    @property
    def alerts(self) -> Sequence[Alert]: ...

    @property
    def missing(self) -> Sequence[str]: ...

    @property
    def now(self) -> ServerClock:
        """By which the state is dated."""
        ...


@dataclass
class Live:
    watch: Watched
    bus: Bus
    """With a key that may read the episodes' chains."""
    subjects: Subjects
    config: Config
    _ended: anyio.Event = field(default_factory=anyio.Event)

    @property
    def section(self) -> Section:
        return Section(label=LABEL, path=PATH, routes=self._routes)

    def _routes(self, shell: Shell) -> tuple[Route, ...]:
        async def page(_: Request) -> Response:
            return shell.page("Live", "live.js", section=LABEL)

        return (
            Route(PATH, page),
            Route("/api/live", self._stream),
            Route("/api/live/episodes/{episode}", explaining(self._episode)),
            Route("/api/live/screenshots/{digest}/{episode}/{attempt:int}/{step:int}", explaining(self._screenshot)),
        )

    def end(self) -> None:
        """Lets every page go."""
        self._ended.set()

    async def _stream(self, _: Request) -> Response:
        return StreamingResponse(self._updates(), media_type="text/event-stream")

    async def _updates(self) -> AsyncIterator[bytes]:
        """Lines of `snapshot.Updates`, each with what has not been read yet."""
        updates, event = Updates(), b"event: whole\nretry: %d\n" % _AGAIN_MS
        while not self._ended.is_set():
            watch = self.watch
            update = updates.next(watch.state, watch.alerts, self.config, watch.now())
            yield event + b"data: " + msgspec.json.encode({"missing": watch.missing, **update}) + b"\n\n"
            event = b"event: update\n"
            with anyio.move_on_after(_EVERY_S):
                await self._ended.wait()

    async def _episode(self, request: Request) -> Response:
        episode = named(request.path_params["episode"])
        cell = self.watch.state.cells.by_episode.get(episode)
        return json_answer(await live_episode(self.bus, self.subjects, episode, attempt=cell.attempt if cell else 0))

    async def _screenshot(self, request: Request) -> Response:
        asked = request.path_params
        episode = named(asked["episode"])
        screenshot = await screenshot_at(self.bus, self.subjects, episode, asked["attempt"], asked["step"], asked["digest"])
        return screenshot_answer(screenshot)
