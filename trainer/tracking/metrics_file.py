"""Writes `metrics.jsonl`: a line per version trained or evaluated, each once however often a trainer died."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from trainer.tracking import Row

_VERSION = "version"

Moved = Callable[[int], int]
"""From a position behind some lines to the position behind those of them that are left."""


class MetricsFile:
    """Appends rows; a row that is there already is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = {_key(row) for row, _ in rows_behind(path, 0)}

    def append(self, row: Row) -> None:
        """Writes one line, in one piece. Raises `OSError`."""
        if _key(row) in self._known:
            return
        line = msgspec.json.encode({_VERSION: row.version, **row.metrics}) + b"\n"
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with self.path.open("ab") as file:
                file.write(line)
        except OSError:
            # A full disk takes half a line: the next one must not continue it.
            with contextlib.suppress(OSError):
                os.truncate(self.path, size)
            raise
        self._known.add(_key(row))

    def resume(self, newest: int) -> Moved:
        """Takes out what a trainer that died left behind: half a line, and versions above the `newest` that was announced.

        Returns where a position in the file has moved to. Raises `OSError`.
        """
        lines = list(_lines(self.path.read_bytes())) if self.path.exists() else []
        text = b"".join(line for row, line in lines if row.version <= newest)
        if self.path.exists() and text != self.path.read_bytes():
            partial = self.path.with_suffix(f".{os.getpid()}")
            partial.write_bytes(text)
            partial.replace(self.path)
        self._known = {_key(row) for row, _ in lines if row.version <= newest}

        def moved(offset: int) -> int:
            end = kept = 0
            for row, line in lines:
                end += len(line)
                if end <= offset and row.version <= newest:
                    kept += len(line)
            return kept

        return moved

    def missing(self, newest: int) -> list[int]:
        """Versions up to the `newest` that have no line of their training."""
        return [version for version in range(1, newest + 1) if (version, False) not in self._known]

    def has_evaluation(self, version: int) -> bool:
        return (version, True) in self._known


def rows_behind(path: Path, offset: int) -> Iterator[tuple[Row, int]]:
    """The whole lines behind a byte, each with the byte that it ends at."""
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    for row, line in _lines(data):
        offset += len(line)
        yield row, offset


def _lines(data: bytes) -> Iterator[tuple[Row, bytes]]:
    """The rows up to the first line that is not whole, with their text."""
    for line in data.splitlines(keepends=True):
        try:
            metrics = msgspec.json.decode(line, type=dict[str, float | None])
        except msgspec.DecodeError:
            return
        if not line.endswith(b"\n"):
            return
        version = int(metrics.pop(_VERSION) or 0)
        yield Row(version, {name: value for name, value in metrics.items() if value is not None}), line


def _key(row: Row) -> tuple[int, bool]:
    return row.version, row.evaluates
