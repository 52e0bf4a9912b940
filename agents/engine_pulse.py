"""Says when an engine hangs: what it has begun is overdue. Written on the engine's thread, read on any other."""

import time
from pathlib import Path

_BOOT_S = 3600.0
"""For vLLM to compile and to measure what fits, beside reading the weights."""
_LEAST_BYTES_A_S = 20e6
"""Of weights, from a slow disk that others read too."""
_LEAST_SILENCE_S = 600.0
"""A kernel that is compiled at its first use, or a long prompt on a CPU, takes minutes."""
_ANSWERS = 2.0


class Pulse:
    """Of one engine. While nothing is owed it rests, however long."""

    def __init__(self, *, answer_s: float) -> None:
        """`answer_s`: within which an answer has to be there, to be of use."""
        self._silence_s = max(_LEAST_SILENCE_S, _ANSWERS * answer_s)
        self._owed: tuple[float, str] | None = None
        """When, by this process's clock, and what is to be said after that."""

    def boots(self, folder: Path) -> None:
        self._owe("start", _BOOT_S + reading_s(folder))

    def loads(self, folder: Path) -> None:
        """New weights; requests may have to be finished first."""
        self._owe("load weights", self._silence_s + reading_s(folder))

    def beats(self) -> None:
        """Something was computed, and more is to come."""
        self._owe("compute anything", self._silence_s)

    def rests(self) -> None:
        self._owed = None

    def _owe(self, what: str, within_s: float) -> None:
        self._owed = time.monotonic() + within_s, f"vLLM hangs: it did not {what} within {within_s:.0f} s"

    @property
    def hung(self) -> str:
        """What the engine should have done by now; empty: nothing."""
        owed = self._owed
        return owed[1] if owed is not None and time.monotonic() > owed[0] else ""


def reading_s(folder: Path) -> float:
    """Seconds that reading a folder's own files may take."""
    return sum(file.stat().st_size for file in folder.glob("*") if file.is_file()) / _LEAST_BYTES_A_S
