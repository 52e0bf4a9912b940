"""Defines the orders that a worker takes over the bus, and its answers.

An order is one word, the answer to any of them a report, as JSON: `nats request <run>.control.<role>.<worker> status`.
"""

import enum

import msgspec

from schemas.ids import WorkerId
from schemas.messages import Role


class Order(enum.StrEnum):
    STATUS = "status"
    """Say how you stand."""
    DRAIN = "drain"
    """Take nothing more, finish what you hold, and leave."""
    RESTART = "restart"
    """As `drain`; whoever keeps the worker running then starts it anew."""


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """How one worker stands."""

    role: Role
    worker: WorkerId
    id: str
    """Of this process: a successor of the same name has another."""
    state: str
    note: str = ""
    metrics: dict[str, float] = {}

    @property
    def is_up(self) -> bool:
        """It serves, or could at once."""
        return self.state not in ("starting", "loading", "draining")
