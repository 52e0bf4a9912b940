"""Pulls messages of one consumer: keeps just as many asked for as somebody wants, and notices when nobody answers any more.

The client library's own `fetch` can stall and does not notice a killed server, so this speaks the protocol itself: pull
requests with an idle heartbeat, and a count of what the server still owes.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import anyio
import msgspec
import structlog
from nats.aio.msg import Msg

from bus.jetstream.api import NS
from bus.jetstream.calls import NoAnswer, status_of
from bus.jetstream.link import Link

_log = structlog.get_logger()
_EXPIRES_S = 30.0
_HEARTBEAT_S = 2.0
"""A killed server shows by its connection at once; this is for a consumer that is lost without one. Every waiting request
costs a message each time, and every free slot of a worker may have one."""
_SILENCE_S = 2.5 * _HEARTBEAT_S
_PAUSE_S = 0.05
_HEARTBEAT = "100"
_UNSENT = "Nats-Pending-Messages"


@dataclass(frozen=True, slots=True)
class Source:
    """The consumer that one session pulls from."""

    stream: str
    consumer: str


class Puller:
    """Runs sessions one after the other; each begins with `open_source` and ends when consumer or connection is lost."""

    def __init__(
        self,
        link: Link,
        *,
        open_source: Callable[[], Awaitable[Source]],
        wanted: Callable[[], int],
        take: Callable[[Msg], None],
    ) -> None:
        """`wanted`: messages that could be used now. `take`: accepts one."""
        self._link = link
        self._open_source = open_source
        self._wanted = wanted
        self._take = take
        self._owed = 0
        self._heard = 0.0
        self._broken = False
        self._changed = anyio.Event()

    def wake(self) -> None:
        """To be called when `wanted` may have grown."""
        self._changed.set()

    async def run(self) -> None:
        """Raises `BusUnavailable` when the source cannot be opened."""
        self._link.on_lost.add(self._lost)
        try:
            while True:
                await self._link.wait_up()
                await self._session(await self._open_source())
                await anyio.sleep(_PAUSE_S)  # a consumer that is refused again and again must not keep us busy
        finally:
            self._link.on_lost.discard(self._lost)

    def _lost(self) -> None:
        self._broken = True
        self._changed.set()

    async def _session(self, source: Source) -> None:
        inbox = self._link.new_inbox()
        self._owed = 0
        self._broken = False
        feed = await self._link.subscribe(inbox, self._arrived)
        try:
            while not self._broken:
                await self._pull(source, inbox)
                await self._wait(source)
        except NoAnswer as error:
            _log.info("pull_interrupted", stream=source.stream, consumer=source.consumer, reason=str(error))
        finally:
            await self._link.unsubscribe(feed)

    async def _pull(self, source: Source, inbox: str) -> None:
        self._changed = anyio.Event()
        missing = self._wanted() - self._owed
        if missing <= 0:
            return
        if not self._owed:
            self._heard = time.monotonic()
        self._owed += missing
        request = {"batch": missing, "expires": int(_EXPIRES_S * NS), "idle_heartbeat": int(_HEARTBEAT_S * NS)}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{source.stream}.{source.consumer}"
        await self._link.publish(subject, msgspec.json.encode(request), reply=inbox)

    async def _wait(self, source: Source) -> None:
        """Returns when something changed; marks the session broken when the server owes messages and is silent."""
        if not self._owed:
            await self._changed.wait()
            return
        with anyio.move_on_after(max(self._heard + _SILENCE_S - time.monotonic(), 0.0)):
            await self._changed.wait()
            return
        if time.monotonic() < self._heard + _SILENCE_S:
            return
        # A busy event loop looks like a silent server: what has arrived is read before judging.
        with suppress(NoAnswer):
            await self._link.round_trip(_HEARTBEAT_S)
        if time.monotonic() >= self._heard + _SILENCE_S:
            _log.info("pull_silent", stream=source.stream, consumer=source.consumer)
            self._broken = True

    def _arrived(self, message: Msg) -> None:
        self._heard = time.monotonic()
        status = status_of(message)
        if not status:
            self._owed = max(self._owed - 1, 0)
            self._take(message)
            if not self._owed:
                self._changed.set()
        elif status != _HEARTBEAT:
            self._ended(message)

    def _ended(self, status: Msg) -> None:
        """A pull request ended early (it expired), or there is nobody to pull from."""
        unsent = (status.headers or {}).get(_UNSENT)
        if unsent is None:
            self._lost()
        else:
            self._owed = max(self._owed - int(unsent), 0)
            self._changed.set()
