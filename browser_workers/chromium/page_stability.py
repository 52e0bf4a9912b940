"""Waits until a page is stable: neither its network nor it itself does anything, or a cap has passed.

Invariant: a page that has come to rest is not waited for again until an event or an action says that it may have changed.
"""

import time
from dataclasses import dataclass
from typing import TypeVar

import anyio
import msgspec

from browser_workers.browser import Box, EnvironmentState, Opening, PageState
from browser_workers.chromium.calls import CallRefused, Calls
from browser_workers.chromium.effect_observer import Effect, EffectObserver, PageSnapshot
from browser_workers.chromium.evaluation import Evaluation, guarded
from browser_workers.chromium.loading import Loading
from browser_workers.chromium.navigation_errors import answered_badly
from browser_workers.chromium.side_effects import SideEffect
from schemas.errors import PageFailed
from schemas.messages import Action

T = TypeVar("T")

_TRAFFIC_CAP_S = 3.0
"""How long requests of a loaded document are waited for: some never end."""
_RESTLESS_CAP_S = 0.7
"""The same, where they have not ended before."""
_MANY_DOCUMENTS = 6
"""More than any chain of pages that lead on to each other."""
_TEXT_LIMIT = 2000
_MAX_ASIDES = 16
_HAS_BEGUN = "document.body !== null || document.readyState === 'complete'"
_FRESH_S = 0.5
"""How long what an action left is taken for what is there, as long as no event says otherwise."""


class _Environment(msgspec.Struct):
    done: bool = False
    reward: float = 0.0
    target: Box | None = None
    utterance: str = ""
    action: Action | None = None
    success: bool | None = None


@dataclass(frozen=True, slots=True)
class _Last:
    """What the page was when it had come to rest."""

    state: PageState
    num_changes: int
    at: float


class PageStability:
    """Of one page."""

    def __init__(self, opening: Opening, calls: Calls, loading: Loading, evaluation: Evaluation) -> None:
        self.opening = opening
        self.loading = loading
        self._calls = calls
        self._evaluation = evaluation
        self._observer = EffectObserver(evaluation, loading)
        self._last: _Last | None = None
        self.side_effects: tuple[SideEffect, ...] = ()
        """What the page's documents had to say since they were last taken."""
        self._snapshot: PageSnapshot | None = None
        """The newest of the document."""
        self._num_requests_quiet = 0
        """How many requests there had been when the network was last given time to be quiet."""
        self._restless = False
        """The network was not quiet when it was last waited for."""
        self._endless = -1
        """Number of the document that was waited for as long as may be, and still was not complete."""
        self._replaces = False
        """The page was waited for as long as may be, and put one document in the place of another all the while."""
        self._scrolls = False
        """A scroll is under way: the page has handled it before its next frame shows it."""
        self._num_documents_said = 0
        """How many documents there had been when the last one's status was asked for."""

    # actions ----------------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        """An action begins: what the page was no longer holds."""
        self._last = self._snapshot = None
        self._scrolls = False
        self._observer.forget()

    async def watch(self, point: tuple[int, int] | None, *, scrolls: bool = False) -> None:
        """An input at `point`, or by keyboard, comes next; `effect` says afterwards what it came to."""
        self._scrolls = scrolls
        if self.opening.feedback:
            await self._observer.begin(point, names_hit=not scrolls)

    def effect(self) -> Effect:
        return self._observer.report(self._snapshot)

    def take_status(self) -> str:
        """What the site said of the document that is shown, in words, once a document; empty where nothing is wrong."""
        if self._snapshot is None or self._num_documents_said == self.loading.num_documents:
            return ""
        self._num_documents_said = self.loading.num_documents
        return answered_badly(self._snapshot.status)

    def take_side_effects(self) -> tuple[SideEffect, ...]:
        """Each is said once."""
        side_effects, self.side_effects = self.side_effects, ()
        return side_effects

    # what there is ----------------------------------------------------------------------------------------------------

    async def settle(self, cap_s: float) -> None:
        """Waits until page and network have come to rest, or `cap_s` seconds.

        The network has to stay quiet only where something was loaded since it last was; one look at the page brings every
        event that it has sent before.
        """
        num_documents = self.loading.num_documents
        with anyio.move_on_after(min(cap_s, _RESTLESS_CAP_S) if self._replaces else cap_s) as cap:
            patience_s = _RESTLESS_CAP_S if self._restless or self._is_endless else _TRAFFIC_CAP_S
            traffic_until = time.monotonic() + patience_s
            while not self._calls.failure and self._rested() is None:
                if self.loading.loading and not self._is_endless:
                    await self.loading.loaded()
                    traffic_until = time.monotonic() + patience_s
                with anyio.move_on_after(traffic_until - time.monotonic()):
                    await self.loading.idle()
                await self._come_to_rest(traffic_until)
        num_replaced = self.loading.num_documents - num_documents
        self._replaces = cap.cancelled_caught and num_replaced >= (1 if self._replaces else _MANY_DOCUMENTS)
        if cap.cancelled_caught and self.loading.loading and self.loading.navigation is None:
            self._endless = self.loading.num_documents

    @property
    def _is_endless(self) -> bool:
        """Whether the document that is shown has been waited for in vain: a moment for it is enough then."""
        return self.loading.navigation is None and self._endless == self.loading.num_documents

    async def _come_to_rest(self, traffic_until: float) -> None:
        loading, num_requests = self.loading, self.loading.num_requests
        least_s = self.opening.quiet_s if num_requests != self._num_requests_quiet else 0.0
        self._num_requests_quiet = num_requests
        try:
            state = await self._look(least_s if self.opening.quiet_s or self._scrolls else None)
        except CallRefused:
            # Another document takes this one's place: it is that one's rest that counts.
            return
        quiet = not loading.busy and num_requests == loading.num_requests
        if quiet or ((not loading.loading or self._is_endless) and time.monotonic() >= traffic_until):
            self._restless = not quiet
            self._last = _Last(state, loading.num_changes, time.monotonic())

    def _rested(self) -> _Last | None:
        rest = self._last
        if rest is None or rest.num_changes != self.loading.num_changes or time.monotonic() - rest.at > _FRESH_S:
            return None
        return rest

    async def state(self) -> PageState:
        """Address, title and environment."""
        rest = self._rested()
        return await self._look() if rest is None else rest.state

    async def _look(self, rest_s: float | None = None) -> PageState:
        """The page as it is; with `rest_s`, once it has come to rest, which takes so many seconds at least."""
        if not self.opening.feedback and not self.loading.strayed:
            return await self._look_at_own()
        observer = self._observer
        self._snapshot = await (observer.look() if rest_s is None else observer.wait(rest_s, scrolled=self._scrolls))
        self.side_effects = (*self.side_effects, *self._snapshot.side_effects)[-_MAX_ASIDES:]
        environment = None if self.opening.probe == "null" else await self._evaluation.page(self.opening.probe)
        return PageState(url=self._snapshot.url, title=self._snapshot.title, environment=_environment(environment))

    async def _look_at_own(self) -> PageState:
        """In one round trip: a suite's own pages have no reason to lie. Of one that has not begun, once it has."""
        has_begun, state = await self._own_state()
        if not has_begun:
            await self._observer.look()
            _, state = await self._own_state()
        return state

    async def _own_state(self) -> tuple[bool, PageState]:
        """And whether there was anything of the document."""
        found = await self._evaluation.page(f"[{_HAS_BEGUN}, location.href, document.title, {guarded(self.opening.probe)}]")
        has_begun, url, title, environment = _convert(found, tuple[bool, str, str, object])
        state = PageState(url=url[:_TEXT_LIMIT], title=title[:_TEXT_LIMIT], environment=_environment(environment))
        return has_begun, state


def _environment(found: object) -> EnvironmentState | None:
    if found is None:
        return None
    read = _convert(found, _Environment)
    return EnvironmentState(read.done, read.reward, read.target, read.utterance, read.action, read.success)


def _convert(found: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        raise PageFailed(f"the page's own state cannot be read: {error}") from error
