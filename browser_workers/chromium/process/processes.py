"""The processes of one Chromium and its driver, as the system shows them.

Invariant: only the driver that was started here and its descendants are ever looked at or ended; a number that has passed to
another process is not mistaken for it. All of it blocks for a moment: call it in a thread. Without /proc nothing is seen.
"""

import enum
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from browser_workers.chromium.process.memory import MIB, pss_mib

_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_TYPE = "--type="
_PROFILE = "--user-data-dir="
_NETWORK = "--utility-sub-type=network.mojom.NetworkService"


class Part(enum.Enum):
    """What a process is for."""

    DRIVER = "driver"
    BROWSER = "browser"
    ZYGOTE = "zygote"
    """Every page's process is forked from it."""
    NETWORK = "network process"
    """Holds the cookies of every context."""
    FORKED = "fork of the zygote"
    """It shows the zygote's command line until it has its own."""
    PAGE = "page"
    OTHER = "other process"


_SPAWN_PAGES = frozenset({Part.ZYGOTE, Part.FORKED})
_SPAWN_OTHERS = frozenset({Part.DRIVER, Part.BROWSER})
_FULL_EVERY = 4
"""Looks of which one goes through all the threads of `_SPAWN_OTHERS`: most of the cost, for processes that seldom come."""


def part_of(command_line: Sequence[str], parent: Part) -> Part:
    """What a descendant of the driver is."""
    kind = next((text.removeprefix(_TYPE) for text in command_line if text.startswith(_TYPE)), "")
    match kind:
        case "renderer":
            return Part.PAGE
        case "zygote":
            return Part.FORKED if parent in (Part.ZYGOTE, Part.FORKED) else Part.ZYGOTE
        case "utility" if _NETWORK in command_line:
            return Part.NETWORK
        case "" if any(text.startswith(_PROFILE) for text in command_line):
            return Part.BROWSER
        case _:
            return Part.OTHER


@dataclass(frozen=True, slots=True)
class Seen:
    """One process at one moment."""

    part: Part
    resident_mib: float
    stopped: bool = False
    """By a signal."""
    cpu_s: float = 0.0
    """Used so far, of all cores."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Of those whom an answer passes, so far: the main threads of browser and driver, and the thread that hears the driver.

    Each may be behind with what a page has caused, and the answer comes after all of that.
    """

    ran_s: float = 0.0
    """On a CPU."""
    queued_s: float = 0.0
    """Ready, while others had the CPUs."""

    def starved_since(self, before: "Turns", elapsed_s: float) -> bool:
        """Whether together they got less than a quarter of the CPU time that they could have used, and that held them up.

        Pages that keep the browser busy leave it more, on two cores too: then the machine has other work.
        """
        ran_s, queued_s = self.ran_s - before.ran_s, self.queued_s - before.queued_s
        return queued_s > max(3 * ran_s, elapsed_s / 2)


@dataclass(frozen=True, slots=True)
class _Known:
    process: psutil.Process
    part: Part
    born: int
    """System ticks; with its number, this is its identity."""


class ProcessTree:
    """Knows every process that a look has found; one look at a time. Is made in the thread that hears the driver."""

    def __init__(self, driver: psutil.Process) -> None:
        stat = _read_stat(driver.pid)
        self._known = {driver.pid: _Known(driver, Part.DRIVER, stat.born if stat else 0)}
        self._num_looks = 0
        self._hears = threading.get_native_id()

    def look(self, *, full: bool = False) -> dict[int, Seen]:
        """All that live, by number. A page's process is found at once, any other within a few looks or by a `full` one."""
        is_full = full or self._num_looks % _FULL_EVERY == 0
        self._num_looks += 1
        spawning = _SPAWN_PAGES | _SPAWN_OTHERS if is_full else _SPAWN_PAGES
        seen: dict[int, Seen] = {}
        waiting = list(self._known)
        while waiting:
            pid = waiting.pop()
            known, stat = self._known[pid], _read_stat(pid)
            if pid in seen or stat is None or stat.born != known.born:
                continue
            seen[pid] = Seen(known.part, stat.resident_mib, stat.stopped, stat.cpu_s)
            if known.part in spawning:
                waiting += [child for child in _children(pid) if self._knows(child, known)]
        for pid in self._known.keys() - seen.keys():
            del self._known[pid]
        return seen

    def _knows(self, pid: int, parent: _Known) -> bool:
        """Whether it could be told what it is: one that has not become its own program yet is left to the next look."""
        known, stat = self._known.get(pid), _read_stat(pid)
        if stat is None:
            return False
        if known is not None and known.born == stat.born and known.part is not Part.FORKED:
            return True
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            command_line = process.cmdline()
            if command_line and (parent.part in _SPAWN_PAGES or command_line != parent.process.cmdline()):
                self._known[pid] = _Known(process, part_of(command_line, parent.part), stat.born)
                return True
        return False

    def turns(self) -> Turns:
        answering = [pid for pid, known in tuple(self._known.items()) if known.part in _SPAWN_OTHERS]
        each = [_read_turns(number) for number in (*answering, self._hears)]
        return Turns(sum(turns.ran_s for turns in each), sum(turns.queued_s for turns in each))

    def memory_mib(self) -> float:
        """PSS of all of them."""
        return sum(pss_mib(pid) for pid in self.look())

    def kill(self, pid: int) -> None:
        if (known := self._known.get(pid)) is not None:
            with suppress(psutil.Error):
                known.process.kill()

    def kill_all(self) -> None:
        for known in tuple(self._known.values()):
            with suppress(psutil.Error):
                for process in (*known.process.children(recursive=True), known.process):
                    process.kill()

    def profiles(self) -> set[str]:
        """The folders in which Chromium keeps its state."""
        found: set[str] = set()
        for known in self._known.values():
            with suppress(psutil.Error):
                found.update(text.removeprefix(_PROFILE) for text in known.process.cmdline() if text.startswith(_PROFILE))
        return found


@dataclass(frozen=True, slots=True)
class _Stat:
    stopped: bool
    resident_mib: float
    born: int
    cpu_s: float


def _read_stat(pid: int) -> _Stat | None:
    """None when it is gone, or dead and not yet reaped."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name, which may hold anything, stands in brackets.
    fields = text[text.rindex(")") + 2 :].split()
    if fields[0] in "ZX":
        return None
    return _Stat(
        stopped=fields[0] == "T",
        resident_mib=int(fields[21]) * _PAGE_BYTES / MIB,
        born=int(fields[19]),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS,
    )


def _read_turns(number: int) -> Turns:
    """Of a thread, or of a process's main one; nothing of one that is gone."""
    try:
        ran, queued, _ = (_PROC / str(number) / "schedstat").read_text(encoding="ascii").split()
    except OSError:
        return Turns()
    return Turns(int(ran) / 1e9, int(queued) / 1e9)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            with suppress(OSError):
                found += [int(text) for text in (thread / "children").read_text(encoding="ascii").split()]
    return found
