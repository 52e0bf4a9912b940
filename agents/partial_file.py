"""A file that arrives in pieces, in any order, and outlasts the process that writes it.

Beside it a journal names every piece with its hash. Whoever goes on trusts a piece only when the bytes on the disk match it: a
machine that lost power may have kept the journal and lost the bytes.
"""

import hashlib
import os
from pathlib import Path

from agents.weight_files import disk_errors_named, file_digest
from bus.weight_chunks import Stretch
from schemas.errors import CheckpointCorrupt
from schemas.messages import FileHash


class PartialFile:
    """Use `resume`. Its methods block; `write` may run in several threads at once."""

    def __init__(self, path: Path, file: FileHash) -> None:
        self._path = path
        self._data = path.with_name(f"{path.name}.partial")
        self._journal = path.with_name(f"{path.name}.journal")
        self._file = file
        self.held: set[Stretch] = set()
        """What is on the disk and was verified."""

    @classmethod
    def resume(cls, path: Path, file: FileHash) -> "PartialFile":
        """The file that is to become `path`, with whatever an earlier process left of it."""
        partial = cls(path, file)
        with disk_errors_named(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial._data.open("ab") as data:
                data.truncate(file.num_bytes)
        for begin, end, sha256 in partial._lines():
            if hashlib.sha256(partial._read(begin, end)).hexdigest() == sha256:
                partial.held.add(Stretch(begin, end))
        return partial

    def write(self, begin: int, data: bytes, sha256: str) -> None:
        """`sha256`: of `data`, which was compared with it."""
        stretch = Stretch(begin, begin + len(data))
        entry = f"{stretch.begin} {stretch.end} {sha256}\n".encode()
        with disk_errors_named(self._data.parent):
            with self._data.open("r+b") as file:
                file.seek(begin)
                file.write(data)
            # One short write at the end of the file is whole or not there, whoever else appends.
            with self._journal.open("ab", buffering=0) as journal:
                journal.write(entry)
        self.held.add(stretch)

    def finish(self) -> None:
        """Gives the file its final name, once all of it is there.

        Raises:
            PolicyError: it cannot be forced to the disk.
            CheckpointCorrupt: the pieces do not add up to the file's hash; all of them are dropped.
        """
        if file_digest(self._data) != self._file.sha256:
            self.discard()
            raise CheckpointCorrupt(f"what was fetched of {self._file.path} does not match its hash")
        with disk_errors_named(self._data.parent):
            descriptor = os.open(self._data, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._data.replace(self._path)
        self._journal.unlink(missing_ok=True)

    def discard(self) -> None:
        self._data.unlink(missing_ok=True)
        self._journal.unlink(missing_ok=True)
        self.held.clear()

    def _read(self, begin: int, end: int) -> bytes:
        with self._data.open("rb") as file:
            file.seek(begin)
            return file.read(end - begin)

    def _lines(self) -> list[tuple[int, int, str]]:
        """Of the journal; the last one may have been cut off."""
        if not self._journal.exists():
            return []
        fields = (line.split() for line in self._journal.read_text(errors="replace").splitlines())
        return [(int(f[0]), int(f[1]), f[2]) for f in fields if len(f) == 3 and f[0].isdigit() and f[1].isdigit()]
