"""Brings `metrics.jsonl` to one backend, in a thread of its own and at that backend's pace.

Invariant: nothing that the backend does, or fails to do, reaches the trainer. A row that could not be delivered is tried
again, ever more rarely, also by the next trainer: the position is a file, written behind each delivery.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from bus.retry import Backoff
from trainer.tracking import Backend, ShownEpisode
from trainer.tracking.metrics_file import Moved, rows_behind

AGAIN = Backoff(15.0, 3600.0)
_log = structlog.get_logger()

OpenBackend = Callable[[int], Backend]
"""Opens a backend that has the metrics of all versions below this one."""


class Follower:
    """One backend. `wake` it after every line; `close` delivers what is left, within a deadline."""

    def __init__(self, name: str, open_backend: OpenBackend, *, metrics: Path, position: Path, again: Backoff = AGAIN) -> None:
        self._name = name
        self._open_backend = open_backend
        self._metrics = metrics
        self._position = position
        self._again = again
        self._shown: deque[tuple[int, Sequence[ShownEpisode]]] = deque(maxlen=2)
        self._changed = threading.Condition()
        self._pending = True
        self._closing = False
        self._num_failed = 0
        """Tries in a row."""
        self._backend: Backend | None = None
        self._thread = threading.Thread(target=self._run, name=f"tracking-{name}", daemon=True)

    def move(self, moved: Moved) -> None:
        """Lines were taken out, before the first `wake`. Raises `OSError`."""
        self._remember(moved(self._remembered()))

    def wake(self, shown: tuple[int, Sequence[ShownEpisode]] | None = None) -> None:
        """There is a new line, or there are episodes to show."""
        self._start()
        with self._changed:
            if shown is not None:
                self._shown.append(shown)
            self._pending = True
            self._changed.notify()

    def close(self, timeout_s: float) -> None:
        """Delivers what is left, once; gives up after `timeout_s`: what was not delivered stays for the next trainer."""
        self._start()
        with self._changed:
            self._closing = self._pending = True
            self._changed.notify()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            _log.warning("tracking_abandoned", backend=self._name, waited_s=timeout_s)

    def _start(self) -> None:
        if self._thread.ident is None:
            self._thread.start()

    # the thread -------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        closing = False
        while not closing:
            with self._changed:
                self._changed.wait_for(lambda: self._pending)
                self._pending, closing = False, self._closing
            if not self._try(closing) and not closing:
                self._pause()
        self._drop()

    def _pause(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing, self._again.pause_s(self._num_failed))
            self._pending = True

    def _try(self, closing: bool) -> bool:
        """Whether everything was delivered."""
        try:
            self._deliver()
            if closing and self._backend is not None:
                backend, self._backend = self._backend, None
                backend.close()
        except Exception as error:  # noqa: BLE001 - the boundary: libraries of others, networks and disks
            if not self._num_failed:
                _log.warning("tracking_failed", backend=self._name, error=f"{type(error).__name__}: {error}")
            self._num_failed += 1
            self._drop()
            return False
        if self._num_failed:
            _log.info("tracking_recovered", backend=self._name)
        self._num_failed = 0
        return True

    def _deliver(self) -> None:
        offset = self._offset()
        for row, end in rows_behind(self._metrics, offset):
            self._opened(offset).log(row)
            self._remember(end)
        while self._shown:
            version, episodes = self._shown[0]
            self._opened(self._offset()).show(version, episodes)
            self._shown.popleft()

    def _opened(self, offset: int) -> Backend:
        if self._backend is None:
            trained = [row.version for row, end in rows_behind(self._metrics, 0) if end <= offset and not row.evaluates]
            self._backend = self._open_backend(max(trained, default=0) + 1)
        return self._backend

    def _offset(self) -> int:
        size = self._metrics.stat().st_size if self._metrics.exists() else 0
        return min(size, self._remembered())

    def _remembered(self) -> int:
        try:
            return int(self._position.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def _remember(self, offset: int) -> None:
        partial = self._position.with_suffix(".partial")
        partial.write_text(str(offset))
        partial.replace(self._position)

    def _drop(self) -> None:
        backend, self._backend = self._backend, None
        if backend is not None:
            with contextlib.suppress(Exception):
                backend.close()
