"""Ways out of the gate through proxies of others: which one an episode takes, and which are left alone for a while.

Invariants: an episode keeps its proxy until it ends; one that failed by itself is given to no other episode before its
cool-down is over, and one that a site has blocked to none that begins on that site, unless there is no other.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from browser_workers.network.pipe import End
from browser_workers.network.tunnel import ProxyFailed, ProxySilent, through
from schemas.proxy_address import ProxyAddress

_log = structlog.get_logger()
_MOST_SILENT = 3
"""Connections in a row that a proxy may leave without an answer: each may be the site's doing."""
_SILENT_S = 4.0
"""Whoever waited for so long in vain, and went, counts too."""


@dataclass(eq=False, slots=True)
class _State:
    proxy: ProxyAddress
    ready_at: float = 0.0
    num_silent: int = 0
    ready_for: dict[str, float] = field(default_factory=dict)
    """Of sites that have blocked it."""

    def ready_on(self, site: str) -> float:
        """From when on an episode on this site may have it."""
        return max(self.ready_at, self.ready_for.get(site, 0.0))


class Egresses:
    """The proxies of one worker."""

    def __init__(
        self,
        proxies: Sequence[ProxyAddress],
        *,
        per_site: bool = False,
        looks_up: bool = False,
        excepted: Sequence[str] = (),
        cooldown_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            per_site: a site's episodes share a proxy, on every worker the same.
            looks_up: names are the proxy's to look up.
            excepted: hosts, with their subdomains, that are connected to directly.
        """
        self._states = [_State(proxy) for proxy in proxies]
        self._per_site, self._looks_up = per_site, looks_up
        self._excepted = tuple(excepted)
        self._cooldown_s, self._clock = cooldown_s, clock
        self._num_chosen = 0

    def choose(self, site: str) -> "Egress | None":
        """For an episode on `site`; None: there are no proxies, it goes out directly."""
        if not self._states:
            return None
        ready = self._ready(site)
        if not ready:
            state = min(self._states, key=lambda state: state.ready_on(site))
        elif self._per_site:
            # Rendezvous hashing: when one cools down, only its own sites move.
            state = max(ready, key=lambda state: _rank(site, state.proxy))
        else:
            state = ready[self._num_chosen % len(ready)]
            self._num_chosen += 1
        return Egress(self, state, looks_up=self._looks_up)

    def _ready(self, site: str) -> list[_State]:
        now = self._clock()
        return [state for state in self._states if state.ready_on(site) <= now]

    def has_other(self, state: _State, site: str) -> bool:
        """Whether an episode on this site can have another one now."""
        return any(each is not state for each in self._ready(site))

    def excepts(self, host: str) -> bool:
        return any(host == each or host.endswith(f".{each}") for each in self._excepted)

    @property
    def num_cooling(self) -> int:
        now = self._clock()
        return sum(state.ready_at > now for state in self._states)

    def note_answer(self, state: _State) -> None:
        state.num_silent = 0

    def note_block(self, state: _State, site: str) -> None:
        now = self._clock()
        state.ready_for = {each: until for each, until in state.ready_for.items() if until > now}
        if site not in state.ready_for:
            _log.info("proxy_blocked", proxy=state.proxy.name, site=site, seconds=self._cooldown_s)
        state.ready_for[site] = now + self._cooldown_s

    def note_failure(self, state: _State, failure: ProxyFailed) -> None:
        state.num_silent += 1
        if isinstance(failure, ProxySilent) and state.num_silent < _MOST_SILENT:
            return
        now = self._clock()
        if state.ready_at <= now:
            _log.warning("proxy_cooling", proxy=state.proxy.name, reason=str(failure), seconds=self._cooldown_s)
        state.ready_at, state.num_silent = now + self._cooldown_s, 0


def _rank(site: str, proxy: ProxyAddress) -> bytes:
    """By the user too: providers hand out one address with many of them."""
    return hashlib.blake2b(f"{site} {proxy.name} {proxy.user}".encode()).digest()


class Egress:
    """One episode's."""

    def __init__(self, egresses: Egresses, state: _State, *, looks_up: bool) -> None:
        self.looks_up = looks_up
        """Whether names are the proxy's to look up."""
        self._egresses, self._state = egresses, state

    @property
    def name(self) -> str:
        return self._state.proxy.name

    def note_block(self, site: str) -> None:
        """No other episode on this site gets it for a while."""
        self._egresses.note_block(self._state, site)

    def has_other(self, site: str) -> bool:
        """Whether an episode on this site could have another."""
        return self._egresses.has_other(self._state, site)

    def excepts(self, host: str) -> bool:
        """Whether `host` is connected to directly."""
        return self._egresses.excepts(host)

    @contextmanager
    def passage(self) -> Iterator["Passage"]:
        """For one connection, whatever addresses are tried for it: how the proxy did is noted once, at the end."""
        passage = Passage(self._state.proxy, looks_up=self.looks_up)
        try:
            yield passage
        finally:
            if (failure := passage.failure) is not None:
                self._egresses.note_failure(self._state, failure)
            elif passage.was_answered:
                self._egresses.note_answer(self._state)


class Passage:
    """One connection's, through a proxy. A site that leaves one address without an answer is not the proxy's silence."""

    def __init__(self, proxy: ProxyAddress, *, looks_up: bool) -> None:
        self.looks_up = looks_up
        self.was_answered = False
        self._proxy = proxy
        self._asked_at = math.inf
        self._failure: ProxyFailed | None = None

    async def connect(self, end: Callable[[], End], host: str, port: int) -> End:
        """Raises `ProxyFailed` for what is the proxy's fault, else `OSError`."""
        self._asked_at = min(self._asked_at, time.monotonic())
        try:
            joined = await through(self._proxy, end, host, port)
        except ProxyFailed as failure:
            self._failure = failure
            raise
        except OSError:
            self.was_answered = True
            raise
        self.was_answered = True
        return joined

    @property
    def failure(self) -> ProxyFailed | None:
        """The proxy's, as far as is known."""
        if self._failure is not None and not isinstance(self._failure, ProxySilent):
            return self._failure
        waited_s = time.monotonic() - self._asked_at
        if self.was_answered or (self._failure is None and waited_s < _SILENT_S):
            return None
        return self._failure or ProxySilent(f"the proxy {self._proxy.name} did not answer within {waited_s:.0f} s")
