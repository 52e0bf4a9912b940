"""Notes on this machine what a worker holds: whoever is started again under its name hands that back at once.

So nobody waits for the lease of a process that was killed and restarted; leases are for machines that are gone. Two things
keep a worker that is alive from losing its work to this: its lock on the file, which the system takes away with the process
alone, and the leases themselves: a delivery that its predecessor did not renew in time has another owner by now, whatever else
it took and renewed since, and is left to him.
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

    def lasts(self, at_s: float, now: float) -> bool:
        """Whether its lease, counted from `at_s`, is sure to run still: also a clock that was set back makes it doubtful."""
        return 0 <= now - at_s < self.ack_wait_s


class Holdings:
    """Use `open_holdings`. A line for each delivery that was taken or renewed, `+`, with the time that its lease counts from,
    or settled, `-`. Written to the system, not to the disk: it has to outlive the process and not the machine."""

    def __init__(self, file: int | None, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._file = file
        self._held: dict[Held, float] = {}
        self._num_lines = 0

    def took(self, held: Held, at_s: float) -> None:
        """`at_s`: the time by `clock` that its lease counts from."""
        self._held[held] = at_s
        self._note(_taken(held, at_s))

    def renewed(self, held: Held, at_s: float) -> None:
        """Its lease counts from `at_s` on, unless it was settled meanwhile."""
        if held in self._held:
            self.took(held, at_s)

    def settled(self, held: Held) -> None:
        if self._held.pop(held, None) is not None:
            self._note(f"-{held.reply}\n")

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
                self._num_lines, line = len(self._held), "".join(_taken(*each) for each in self._held.items())
                os.ftruncate(self._file, 0)
            os.write(self._file, line.encode())
        except OSError as error:
            _log.warning("holdings_unwritten", reason=str(error))
            self._file = None


def nowhere() -> Holdings:
    """For those who are not started again under their name."""
    return Holdings(None, time.time)


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
        now = clock()
        left = [held for held, at_s in _unsettled(path) if held.lasts(at_s, now)]
        os.ftruncate(file, 0)
        yield (own := Holdings(file, clock)), left
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


def _taken(held: Held, at_s: float) -> str:
    return f"+{at_s:.3f} {held.ack_wait_s:g} {held.reply}\n"


def _unsettled(path: Path) -> list[tuple[Held, float]]:
    """Each with the time that its lease counts from. A kill may have cut off the last line: it names nothing then that the
    server knows."""
    found: dict[str, tuple[Held, float]] = {}
    for line in path.read_text(errors="replace").splitlines():
        match line[:1], line[1:].split(" "):
            case "-", [reply]:
                found.pop(reply, None)
            case "+", [at_s, ack_wait_s, reply] if reply:
                found[reply] = Held(reply, float(ack_wait_s)), float(at_s)
    return list(found.values())
