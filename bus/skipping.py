"""Records that this process left out: each is told of once, by name, in the log and in the worker's heartbeat."""

from dataclasses import dataclass, field

import structlog

from bus.codec import record_of
from bus.ports import Record, StoredBytes
from schemas.errors import MessageCorrupt

_log = structlog.get_logger()
_LONGEST_REASON = 300
_MOST_KNOWN = 10_000


@dataclass
class Skipped:
    """`count` records so far; `newest` names the last one."""

    count: int = 0
    newest: str = ""
    _known: set[object] = field(default_factory=set)

    def note(self, key: object, reason: str) -> bool:
        """Whether the record is a new one."""
        if key in self._known:
            return False
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known.add(key)
        self.count += 1
        self.newest = reason[:_LONGEST_REASON]
        return True


skipped = Skipped()
"""Of this process, as its processor seconds are."""


def readable(stored: StoredBytes) -> Record | None:
    """The record, or None for one that no reader takes."""
    try:
        return record_of(stored)
    except MessageCorrupt as error:
        if skipped.note((stored.stream, stored.seq, stored.time_s), str(error)):
            _log.error("record_skipped", stream=stored.stream, subject=stored.subject, seq=stored.seq, reason=str(error))
        return None


def skip(subject: str, seq: int, reason: str) -> None:
    """Leaves out a record that was read as a message, and cannot be used."""
    if skipped.note((subject, seq, reason), f"record {seq}, {subject}: {reason}"):
        _log.error("record_skipped", subject=subject, seq=seq, reason=reason)
