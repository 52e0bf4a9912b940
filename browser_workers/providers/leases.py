"""The sessions that one worker holds at a provider, each for one episode.

Invariants: a session is ended with its episode; one that was not, whatever the reason, is ended by the first worker of the run
that sees that nobody holds it: of a worker's own name at once, of any other when its time is over, which comes before its
lease's end. Whatever fails here ends an episode as a browser that fails does.
"""

import random
import time
import uuid
from collections.abc import AsyncIterator, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import anyio
import structlog

from browser_workers.providers.figures import Figures
from browser_workers.providers.orphans import Holder, orphans
from browser_workers.providers.provider import (
    AccountFull,
    Label,
    OutcomeUnknown,
    Place,
    Provided,
    Provider,
    SessionEnded,
)
from bus.background import background
from bus.retry import Backoff
from schemas.errors import BrowserLost, ConfigurationError, MillraceError
from schemas.provider_requirements import HELD

_log = structlog.get_logger()
_LOOKED = 0.05
"""Of a lease, between two looks."""
_ASKED_AGAIN = Backoff(0.5, 15.0)
_END_S = 15.0
"""For a session's end; what is not ended then is swept."""
_LEAVE_S = 20.0
"""For what a worker that leaves still has to end."""
_SOON_S = 1.0
"""Between two looks, however many were asked for."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose sessions they are."""

    run: str = ""
    """One run's alone among all that use the account."""
    worker: str = ""


@dataclass(eq=False)
class Lease:
    """An episode's session."""

    provided: Provided
    began: float = field(default_factory=time.monotonic)
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when it is of no more use, whoever found that out."""
    why_ended: str = ""

    @property
    def place(self) -> Place:
        return self.provided.place

    def end(self, reason: str) -> None:
        if not self.ended.is_set():
            self.why_ended = reason
            self.ended.set()


class Leases:
    """Of one worker; open it as a context manager, in which what is left of others is swept from time to time."""

    def __init__(
        self,
        provider: Provider,
        owner: Owner = Owner(),
        *,
        wait_s: float = 0.0,
        figures: MutableMapping[str, float] | None = None,
    ) -> None:
        """
        Args:
            wait_s: for which an episode waits for a session that cannot be had at once.
            figures: where the cost is written, of providers that have one.
        """
        self._provider = provider
        self._owner = owner
        self._wait_s = wait_s
        self._figures = Figures(figures if figures is not None else {})
        self._held: dict[str, Lease] = {}
        self._tokens: set[str] = set()
        """Of requests under way."""
        self._over: set[str] = set()
        """What ended since the last look began: a list that was made meanwhile may still have it."""
        self._wanted = anyio.Event()
        """Somebody wants a look now."""
        self._has_opened = False
        self._rng = random.Random()  # noqa: S311 - nothing secret is drawn
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self._provider.close)
        if self._provider.lease_s:
            self._stack.push_async_callback(self._leave)
            await self._stack.enter_async_context(background(self._keep))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def lease(self, episode: str) -> AsyncIterator[Lease]:
        """A session for as long as the body takes.

        Raises:
            BrowserLost: none could be had in `wait_s`.
            ConfigurationError: none ever can, and there was none yet.
        """
        lease = await self._opened(episode)
        was_lost = False
        try:
            yield lease
        except BrowserLost:
            was_lost = True
            raise
        finally:
            await self._end(lease, was_lost=was_lost)

    # a session's life -------------------------------------------------------------------------------------------------

    async def _opened(self, episode: str) -> Lease:
        began, num_tried = time.monotonic(), 0
        while True:
            try:
                return await self._open(episode)
            except BrowserLost as error:
                num_tried += 1
                left_s = began + self._wait_s - time.monotonic()
                if left_s <= 0:
                    raise
                pause_s = min(self._pause_s(error, num_tried), left_s)
                _log.info("session_awaited", reason=str(error), seconds=round(pause_s, 1))
                await anyio.sleep(pause_s)
                self._figures.add("session_wait_s", pause_s)

    def _pause_s(self, error: BrowserLost, num_tried: int) -> float:
        """Half of it at least: a provider that is asked in vain is not asked again at once."""
        pause_s = _ASKED_AGAIN.pause_s(num_tried) / 2
        asked_for_s = error.again_after_s if isinstance(error, AccountFull) else 0.0
        return max(pause_s, asked_for_s) + self._rng.uniform(0.0, pause_s)

    async def _open(self, episode: str) -> Lease:
        """Every request has a token of its own, so that what an earlier one may have opened is held by nobody."""
        token = uuid.uuid4().hex
        label = Label(self._owner.run, self._owner.worker, episode, token, time.time() + HELD * self._provider.lease_s)
        self._tokens.add(token)
        try:
            lease = Lease(await self._created(label))
        except BaseException as error:
            if isinstance(error, OutcomeUnknown) or not isinstance(error, Exception):
                self._wanted.set()
            if isinstance(error, BrowserLost) and not isinstance(error, AccountFull):
                self._figures.add("session_failures", 1)
            raise
        finally:
            self._tokens.discard(token)
        if self._provider.lease_s:
            self._held[lease.provided.id] = lease
            self._figures.opened()
        return lease

    async def _created(self, label: Label) -> Provided:
        """What is refused to whoever had a session before is waited for: a person may mend it."""
        try:
            provided = await self._provider.create(label)
        except ConfigurationError as error:
            if not self._has_opened:
                raise
            raise BrowserLost(str(error)) from error
        self._has_opened = True
        return provided

    async def _end(self, lease: Lease, *, was_lost: bool) -> None:
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_END_S):
                await self._asked_to_end(lease.provided.id, was_lost=was_lost)
        if self._held.pop(lease.provided.id, None) is not None:
            self._figures.ended(time.monotonic() - lease.began, was_lost=was_lost)

    async def _asked_to_end(self, session_id: str, *, was_lost: bool = False) -> None:
        """What fails is done again at the next look, which is soon."""
        has_ended = False
        try:
            self._figures.bill(await self._provider.end(session_id, was_lost=was_lost))
            has_ended = True
            self._over.add(session_id)
        except MillraceError as error:
            _log.warning("session_not_ended", session=session_id, reason=str(error))
        finally:
            if not has_ended:
                self._wanted.set()

    # all sessions -----------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        while True:
            try:
                await self.look()
            except MillraceError as error:
                _log.warning("sessions_not_seen", reason=str(error))
            await anyio.sleep(_SOON_S)
            with anyio.move_on_after(_LOOKED * self._provider.lease_s):
                await self._wanted.wait()

    async def look(self) -> None:
        """Ends what nobody holds, and finds out what of its own has ended or has to. Raises `BrowserLost`."""
        self._wanted = anyio.Event()
        now = time.time()
        for lease in self._held.values():
            if lease.provided.label.until <= now:
                lease.end(f"the session was held for {HELD:.0%} of its lease of {self._provider.lease_s:g} s")
        self._over.clear()
        sessions = [each for each in await self._provider.running(self._owner.run) if each.id not in self._over]
        left = orphans(sessions, Holder(self._owner.worker, self._held.keys(), self._tokens), now=time.time())
        async with anyio.create_task_group() as group:
            for session_id in left:
                group.start_soon(self._sweep, session_id)
        listed = {session.id for session in sessions}
        for lease in [lease for name, lease in self._held.items() if name not in listed]:
            await self._ask_after(lease)

    async def _sweep(self, session_id: str) -> None:
        _log.info("session_swept", session=session_id)
        self._figures.add("sessions_swept", 1)
        await self._asked_to_end(session_id)

    async def _ask_after(self, lease: Lease) -> None:
        """A list may be older than a session."""
        try:
            await self._provider.keep_alive(lease.provided)
        except SessionEnded as error:
            lease.end(str(error))

    async def _leave(self) -> None:
        """What requests under way have opened has no other holder any more."""
        with anyio.move_on_after(_LEAVE_S, shield=True):
            try:
                await self.look()
            except MillraceError as error:
                _log.warning("sessions_not_seen", reason=str(error))
