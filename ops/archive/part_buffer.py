"""Decides when a part is written: after so many rows, so many bytes, or so many seconds. Time is passed in."""

from dataclasses import dataclass, field
from typing import Any

MOST_BYTES = 64 * 1024 * 1024
"""Of the rows of one part, screenshots not counted: bounds what the archiver holds."""


@dataclass
class PartBuffer:
    """Rows that are in no file yet."""

    most_rows: int
    most_seconds: float
    most_bytes: int = MOST_BYTES
    rows: list[dict[str, Any]] = field(default_factory=list)
    first_seq: int = 0
    last_seq: int = 0
    num_bytes: int = 0
    _due: float = 0.0

    def add(self, seq: int, row: dict[str, Any], num_bytes: int, now: float) -> None:
        """`now`: monotonic seconds."""
        if not self.rows:
            self.first_seq, self._due = seq, now + self.most_seconds
        self.rows.append(row)
        self.last_seq = seq
        self.num_bytes += num_bytes

    @property
    def is_full(self) -> bool:
        return len(self.rows) >= self.most_rows or self.num_bytes >= self.most_bytes

    def due_in_s(self, now: float) -> float:
        """Seconds until the rows have to be written; infinite without any."""
        return max(self._due - now, 0.0) if self.rows else float("inf")

    def clear(self) -> None:
        self.rows, self.num_bytes = [], 0
