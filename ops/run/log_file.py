"""A log file that never outgrows its bound: at half of it the file becomes `<name>.1`, and a new one begins."""

import threading
from contextlib import suppress
from io import FileIO
from pathlib import Path

LIMIT_BYTES = 32 * 1024 * 1024


class BoundedLog:
    """Appends whole lines; several threads may. A full disk loses lines, never the work that is logged."""

    def __init__(self, path: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._path = path
        self._half = limit_bytes // 2
        self._lock = threading.Lock()
        self._file = self._open()

    def _open(self) -> FileIO:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = FileIO(self._path, "ab")
        self._size = file.tell()
        return file

    def write_line(self, line: str) -> None:
        data = line.encode(errors="backslashreplace") + b"\n"
        with self._lock:
            try:
                if self._file.closed:
                    self._file = self._open()
                if self._size > 0 and self._size + len(data) > self._half:
                    self._file.close()
                    with suppress(FileNotFoundError):
                        self._path.replace(self._path.with_name(self._path.name + ".1"))
                    self._file = self._open()
                # One write a line: a killed process leaves at most its last line torn.
                self._size += self._file.write(data) or 0
            except OSError:
                # The next line opens it anew.
                with suppress(OSError):
                    self._file.close()

    def close(self) -> None:
        self._file.close()
