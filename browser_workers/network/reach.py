"""Defines the port of whatever stands between a session's pages and the network."""

from typing import Protocol

from browser_workers.network.egress import Egress


class Reach(Protocol):
    @property
    def plays(self) -> bool:
        """Whether it answers for the session's own site; else its requests are intercepted."""
        ...

    @property
    def egress(self) -> Egress | None:
        """By which public addresses are reached; None: directly."""
        ...

    def why_blocked(self, host: str) -> str:
        """Why `host` could lately not be reached, in a sentence; empty when nothing is known."""
        ...

    def close(self) -> None:
        """The episode is over: nothing of it stays connected."""
        ...
