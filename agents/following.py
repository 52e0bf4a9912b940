"""Decides which announced version a policy loads, and when it tries one again that it could not load. Pure: time comes in."""

import math
from dataclasses import dataclass

from bus.retry import Backoff
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
_TRIED_AGAIN = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)


def pause_s(num_failures: int, chance: float) -> float:
    """Before the next try: twice as long after every failure, and up to half of it left out, by `chance` (0 to 1).

    Workers that failed together do not come together again.
    """
    return _TRIED_AGAIN.pause_s(num_failures) * (1.0 - 0.5 * chance)


State = tuple[int, int | None, str]
"""What is served, what could not be loaded, and why."""


@dataclass
class Following:
    """The newest announcement counts, by its place on CHECKPOINTS: one that is in vain is forgotten at the next one."""

    served: PolicyVersion
    compared: bool = True
    """False: what is served is taken for version 0, and was not compared yet with what was announced under that name."""
    announced_seq: int = 0
    newest: Checkpoint | None = None
    """What was announced there."""
    wanted: Checkpoint | None = None
    """What it announces, until that is served."""
    reason: str = ""
    """Why that could not be loaded; empty: it was not tried, or nothing is wanted."""
    fault: str = ""
    """The kind of `reason`."""
    num_failures: int = 0
    due_at: float = 0.0

    @property
    def unable(self) -> bool:
        return self.wanted is not None and self.reason != ""

    @property
    def state(self) -> State:
        """What has to be told when it changes. The words of a reason may differ at every try."""
        if self.wanted is None or not self.unable:
            return (self.served, None, "")
        return (self.served, self.wanted.version, self.fault)

    def is_served(self, checkpoint: Checkpoint) -> bool:
        """Or older than what is."""
        return checkpoint.version < self.served or (checkpoint.version == self.served and self.compared)

    def announced(self, seq: int, checkpoint: Checkpoint, now: float) -> None:
        """Hears of the newest announcement, any number of times."""
        if (seq, checkpoint) == (self.announced_seq, self.newest):
            return
        self.announced_seq, self.newest = seq, checkpoint
        if self.is_served(checkpoint):
            self.wanted, self.reason, self.fault = None, "", ""
        else:
            self.wanted, self.num_failures, self.due_at = checkpoint, 0, now

    def loaded(self, version: PolicyVersion) -> None:
        self.served, self.compared = version, True
        if self.wanted is not None and self.is_served(self.wanted):
            self.wanted, self.reason, self.fault = None, "", ""

    def failed(self, checkpoint: Checkpoint, error: Exception, now: float, chance: float) -> None:
        """`checkpoint` could not be loaded; it is tried again after a pause, unless a newer one was announced meanwhile."""
        if checkpoint is self.wanted:
            self.reason, self.fault = str(error), type(error).__name__
            self.num_failures += 1
            self.due_at = now + pause_s(self.num_failures, chance)

    def wait_s(self, now: float) -> float:
        """Until something is to be loaded; 0: now."""
        return math.inf if self.wanted is None else max(0.0, self.due_at - now)
