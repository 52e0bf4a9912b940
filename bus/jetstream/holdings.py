"""Notes on this machine what a worker holds: whoever is started again under its name hands that back at once.

So nobody waits for the lease of a process that was killed and restarted; leases are for machines that are gone. Two things
keep a worker that is alive from losing its work to this: its lock on the file, which the system takes away with the process
alone, and the leases themselves: what its predecessor did not renew in time has another owner by now, and is left to him.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from schemas.file_lock import NoFileLocks, try_lock

_log = structlog.get_logger()
_MODE = 0o600
_LINES_PER_HELD, _LINES = 4, 1000
"""The file is written anew when it has more lines than this."""


@dataclass(frozen=True, slots=True)
class Held:
    """A delivery that was taken and not settled."""

    reply: str
    """Where its acknowledgement goes."""
    ack_wait_s: float


class Holdings:
    """Use `open_holdings`. A line for each delivery that was taken, `+`, or settled, `-`; the file's time is that of the
    latest sign of life. Written to the system, not to the disk: it has to outlive the process and not the machine."""

    def __init__(self, file: int | None) -> None:
        self._file = file
        self._held: dict[str, Held] = {}
        self._num_lines = 0

    def took(self, held: Held) -> None:
        self._held[held.reply] = held
        self._note(f"+{held.ack_wait_s:g} {held.reply}\n")

    def settled(self, held: Held) -> None:
        if self._held.pop(held.reply, None) is not None:
            self._note(f"-{held.ack_wait_s:g} {held.reply}\n")

    def renewed(self) -> None:
        if self._file is not None:
            os.utime(self._file)

    def leave(self, path: Path) -> None:
        """Nothing is to be found by whoever comes next, unless something is held still."""
        if not self._held:
            path.unlink(missing_ok=True)

    def _note(self, line: str) -> None:
        """A disk that takes no more costs what is handed back after a kill: its lease, as on a machine that is gone."""
        if self._file is None:
            return
        self._num_lines += 1
        try:
            if self._num_lines > _LINES_PER_HELD * len(self._held) + _LINES:
                self._num_lines, line = len(self._held), "".join(f"+{h.ack_wait_s:g} {h.reply}\n" for h in self._held.values())
                os.ftruncate(self._file, 0)
            os.write(self._file, line.encode())
        except OSError as error:
            _log.warning("holdings_unwritten", reason=str(error))
            self._file = None


def nowhere() -> Holdings:
    """For those who are not started again under their name."""
    return Holdings(None)


@contextmanager
def open_holdings(path: Path, clock: Callable[[], float] = time.time) -> Iterator[tuple[Holdings, Sequence[Held]]]:
    """Yields the worker's own holdings, empty, and what the process before it left behind and still has the lease of.

    Where another process of this name is alive, or cannot be told, nothing is noted, and nothing was left behind.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _MODE)
    try:
        if not _is_own(file, path):
            yield nowhere(), ()
            return
        silent_s = clock() - os.fstat(file).st_mtime
        left = [held for held in _unsettled(path) if silent_s < held.ack_wait_s]
        os.ftruncate(file, 0)
        yield (own := Holdings(file)), left
        own.leave(path)
    finally:
        os.close(file)


def _is_own(file: int, path: Path) -> bool:
    try:
        if try_lock(file, path.parent):
            return True
        _log.warning("holdings_in_use", file=path.name)
    except NoFileLocks as error:
        _log.warning("holdings_unwritten", reason=str(error))
    return False


def _unsettled(path: Path) -> list[Held]:
    """The last line may have been cut off by a kill: then it names nothing that the server knows."""
    found: dict[str, Held] = {}
    for line in path.read_text(errors="replace").splitlines():
        ack_wait_s, _, reply = line[1:].partition(" ")
        if line.startswith("-"):
            found.pop(reply, None)
        elif line.startswith("+") and reply:
            found[reply] = Held(reply, float(ack_wait_s))
    return list(found.values())
