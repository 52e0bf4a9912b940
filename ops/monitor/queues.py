"""The shared queues as they stand, and how they grew. Pure."""

from collections import deque
from dataclasses import dataclass, field

from bus.ports import QueueDepth
from schemas.messages import Role

_LEAST_SHARE = 0.9
"""Of the time that growth is measured over has to be covered by what was seen."""


@dataclass
class QueueState:
    """One queue; `role` works from it."""

    name: str
    stream: str
    role: Role
    depth: QueueDepth = QueueDepth(0, 0, 0, 0)
    oldest_s: float | None = None
    """Age in seconds of the oldest record that is not acknowledged, where the stream tells."""
    waiting_since: float | None = None
    """Since when there has been pending work without a break."""
    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, depth: QueueDepth, *, oldest_s: float | None, now: float, window_s: float) -> None:
        self.depth, self.oldest_s = depth, oldest_s
        if not depth.num_pending:
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = now
        self._seen.append((now, depth.num_pending))
        while len(self._seen) > 1 and self._seen[1][0] <= now - window_s:
            self._seen.popleft()

    def growth(self, window_s: float) -> tuple[int, int] | None:
        """Pending deliveries then and now; None: it has not been watched for that long, or was shorter in between."""
        if not self._seen or self._seen[-1][0] - self._seen[0][0] < _LEAST_SHARE * window_s:
            return None
        first = self._seen[0][1]
        return (first, self._seen[-1][1]) if min(pending for _, pending in self._seen) >= first else None
