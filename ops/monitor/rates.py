"""Computes how often something happened lately, from counts with times. Pure."""

from collections import deque
from dataclasses import dataclass, field


@dataclass
class Rate:
    """Events of the latest `window_s` seconds, in buckets: memory does not depend on how many there are."""

    window_s: float
    began_at: float = 0.0
    """Nothing was counted before; 0: everything was."""
    total: float = 0.0
    """Of all time."""
    _buckets: deque[tuple[float, float]] = field(default_factory=deque)
    """Beginning and amount."""

    def add(self, amount: float, at: float) -> None:
        self.total += amount
        bucket = at - at % self._bucket_s
        if self._buckets and self._buckets[-1][0] >= bucket:
            # A clock that went back counts towards the newest.
            begin, before = self._buckets.pop()
            self._buckets.append((begin, before + amount))
        else:
            self._buckets.append((bucket, amount))
        self._forget(at)

    def per_s(self, now: float) -> float | None:
        """None: it has not been counted for long enough to say."""
        self._forget(now)
        seconds = min(self.window_s, now - self.began_at)
        return sum(amount for _, amount in self._buckets) / seconds if seconds >= self._bucket_s else None

    @property
    def _bucket_s(self) -> float:
        return self.window_s / 30.0

    def _forget(self, now: float) -> None:
        while self._buckets and self._buckets[0][0] + self._bucket_s <= now - self.window_s:
            self._buckets.popleft()
