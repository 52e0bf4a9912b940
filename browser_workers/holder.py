"""Decides whether the policy worker that has a step in hand still has it, from what asking it brought. Pure.

Invariant: a worker that says that it has the step keeps it, however slow its engine is, until no engine would still be at it;
one whose process is gone is known within a second.
"""

from dataclasses import dataclass

from bus.ports import Offered
from schemas.ids import WorkerId

_ASK_S = 0.4
_CONFIRM_S = 0.3
"""Until a worker that nobody could reach is asked again: longer than it takes to come back to a server that was restarted."""
_NUM_ABSENT = 2
"""Times in a row that nobody is there, after which the process is gone."""
_LONGEST_S = 300.0
"""After so long without an answer any other may answer too. Longer than an engine is given (`policy_config.vllm_timeout`)."""


@dataclass(slots=True)
class Holder:
    """Of one step. Times are those of one monotonic clock."""

    worker: WorkerId
    since: float
    patience_s: float
    """Silence of a worker that is connected, and so perhaps only slow, after which another may answer."""
    _num_absent: int = 0
    _heard_at: float = 0.0

    def __post_init__(self) -> None:
        self._heard_at = self.since

    @property
    def pause_s(self) -> float:
        """Until it is asked next."""
        return _CONFIRM_S if self._num_absent else _ASK_S

    def is_overdue(self, now: float) -> bool:
        return now - self.since >= _LONGEST_S

    def keeps(self, said: Offered, now: float) -> bool:
        """Whether the step is still in its hands, or may be."""
        self._num_absent = self._num_absent + 1 if said is Offered.ABSENT else 0
        match said:
            case Offered.TAKEN:
                self._heard_at = now
                return not self.is_overdue(now)
            case Offered.ABSENT:
                return self._num_absent < _NUM_ABSENT
            case Offered.SILENT:
                return now - self._heard_at < self.patience_s
            case Offered.DECLINED:
                return False
