"""A simulated worker's wall clock is off by what a file says: for drills and tests, from outside its process, while it runs.

Only what asks Python for the time of day sees it; monotonic clocks, files' times and other processes keep theirs, as after a
step of NTP.
"""

import mmap
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_SHIFT = struct.Struct("<d")
_NS = 1_000_000_000


def shift_file(run_folder: Path, worker: str) -> Path:
    """Holds the seconds by which a worker's clock is off; it outlives the worker, as a wrong clock does."""
    return run_folder / "clocks" / worker


def shift_clock(run_folder: Path, worker: str, shift_s: float) -> None:
    """From now on the worker's clock is off by so many seconds."""
    with _opened(shift_file(run_folder, worker)) as shift:
        _SHIFT.pack_into(shift, 0, shift_s)


@contextmanager
def shifted_clock(run_folder: Path, worker: str) -> Iterator[None]:
    """This process reads the worker's wrong time while the context is open, wherever `time.time` is looked up in it."""
    true_s, true_ns = time.time, time.time_ns
    with _opened(shift_file(run_folder, worker)) as shift:

        def shift_s() -> float:
            seconds: float = _SHIFT.unpack_from(shift, 0)[0]
            return seconds

        _replace(lambda: true_s() + shift_s(), lambda: true_ns() + round(shift_s() * _NS))
        try:
            yield
        finally:
            _replace(true_s, true_ns)


def _replace(seconds: Callable[[], float], nanoseconds: Callable[[], int]) -> None:
    time.time, time.time_ns = seconds, nanoseconds


@contextmanager
def _opened(file: Path) -> Iterator[mmap.mmap]:
    file.parent.mkdir(exist_ok=True)
    with file.open("a+b") as opened:
        if opened.seek(0, 2) < _SHIFT.size:
            opened.truncate(_SHIFT.size)
        with mmap.mmap(opened.fileno(), _SHIFT.size) as shift:
            yield shift
