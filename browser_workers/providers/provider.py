"""Defines the port of session providers: whoever has the browser of an episode, and what is known of its sessions.

    Local, Addresses      browsers that serve many episodes: no session is opened, nothing is paid, nothing can be left over
    Browserbase           a session an episode, which costs until it is ended, or until its time is over

`browser_workers.providers.leases` holds sessions for episodes, and ends what nobody holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from schemas.errors import BrowserLost


class AccountFull(BrowserLost):
    """As many sessions, or requests, as the account may have: it is asked again after a while."""

    def __init__(self, reason: str, *, again_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.again_after_s = again_after_s
        """What the provider asked for; 0: it did not say."""


class OutcomeUnknown(BrowserLost):
    """No answer came: what was asked for may have been done."""


class SessionEnded(BrowserLost):
    """The provider says that it is over."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a browser is."""

    url: str = field(default="", repr=False)
    """Its DevTools address, which may hold a secret; empty: it is started on this machine."""
    token: str = field(default="", repr=False)
    """Bearer token for it."""
    is_session: bool = False
    """It is one episode's alone, which plays in its default context, and ends with it."""

    @property
    def shown(self) -> str:
        """Its address without what may be secret in it."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@dataclass(frozen=True, slots=True)
class Label:
    """What a session carries, so that any worker of the run knows whose it is. Never a secret."""

    run: str
    worker: str
    episode: str
    token: str
    """Of one request: what it has brought is found by it, whether or not an answer came."""
    until: float
    """Unix time at which its holder is done with it, or dead."""


@dataclass(frozen=True, slots=True)
class Provided:
    """One session."""

    id: str
    place: Place
    label: Label


@dataclass(frozen=True, slots=True)
class Running:
    """A session that a provider says is running."""

    id: str
    label: Label


@dataclass(frozen=True, slots=True)
class Bill:
    """What a provider says of a session that has ended."""

    proxy_bytes: int = 0


class Provider(Protocol):
    """Every method raises `BrowserLost` within its deadline, and `ConfigurationError` for what asking again cannot help."""

    lease_s: float
    """Seconds after which the provider ends a session by itself; 0: there are no sessions that could be left over."""

    async def create(self, label: Label) -> Provided:
        """Raises `AccountFull` when there is no room now, `OutcomeUnknown` when a session may have been opened."""
        ...

    async def keep_alive(self, session: Provided) -> None:
        """Raises `SessionEnded` when it has ended."""
        ...

    async def end(self, session_id: str, *, was_lost: bool = False) -> Bill:
        """No failure where it has ended already. `was_lost`: its browser was gone before the episode was over."""
        ...

    async def running(self, run: str) -> Sequence[Running]:
        """The run's sessions, of all its workers."""
        ...

    async def close(self) -> None:
        """Nothing is asked any more."""
        ...
