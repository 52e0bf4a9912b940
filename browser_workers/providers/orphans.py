"""Decides which running sessions nobody holds. Pure.

Invariant: no session that its holder still uses is named, where no machine's clock is ahead of another's by more than what an
episode leaves of its lease.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from browser_workers.providers.provider import Running


@dataclass(frozen=True, slots=True)
class Holder:
    """A worker, and what it has."""

    worker: str
    ids: Set[str]
    tokens: Set[str]
    """Of requests under way, whose sessions have no name yet."""


def orphans(sessions: Iterable[Running], holder: Holder, *, now: float) -> Sequence[str]:
    """Names of those whose time is over, and of those of a worker of this name that this one does not hold: its predecessor's,
    those of a request whose answer was lost, and those that a provider opened twice."""
    return [session.id for session in sessions if session.label.until <= now or _is_left(session, holder)]


def _is_left(session: Running, holder: Holder) -> bool:
    is_mine = session.label.worker == holder.worker
    return is_mine and session.id not in holder.ids and session.label.token not in holder.tokens
