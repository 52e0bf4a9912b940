"""The trainer's side of tracking: one line per version, now and then a page of sampled episodes, and whoever follows them.

Invariant: nothing here stops training. A disk that is full or a bus that is away costs metrics, and is said once.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio.to_thread
import structlog

from bus.ports import Bus
from bus.subjects import Subjects
from schemas.ids import PolicyVersion
from schemas.log_config import LogConfig
from schemas.messages import Checkpoint, Judgement
from trainer.tracking import Row
from trainer.tracking.follower import Follower, OpenBackend
from trainer.tracking.metrics_file import MetricsFile
from trainer.tracking.sample_choice import chosen_episodes
from trainer.tracking.sample_page import sample_page, write_page
from trainer.tracking.samples import ShowStep, shown_episodes

_CLOSE_S = 60.0
_log = structlog.get_logger()


class Tracking:
    """Opened by `open_tracking`."""

    def __init__(
        self,
        folder: Path,
        followers: Sequence[Follower],
        *,
        bus: Bus,
        subjects: Subjects,
        log: LogConfig,
        show_step: ShowStep | None,
    ) -> None:
        self._folder = folder
        self._metrics = MetricsFile(folder / "metrics.jsonl")
        self._followers = followers
        self._bus = bus
        self._subjects = subjects
        self._config = log
        self._show_step = show_step
        self._failing: set[str] = set()

    async def resume(self, newest: int, announced: Callable[[PolicyVersion], Awaitable[Checkpoint | None]]) -> None:
        """Makes the lines those of the versions that were `announced`: what a trainer that died wrote too much or too little
        of."""
        try:
            moved = self._metrics.resume(newest)
            for follower in self._followers:
                follower.move(moved)
        except OSError as error:
            self._failed("resume", error)
        for version in self._metrics.missing(newest):
            if (checkpoint := await announced(PolicyVersion(version))) is not None:
                self._append(Row(version, checkpoint.metrics))

    async def trained(self, version: int, metrics: Mapping[str, float], batch: Sequence[Judgement]) -> None:
        """A version was announced: writes its metrics and, when it is time, shows some episodes of its `batch`."""
        self._append(Row(version, metrics))
        if self._config.table_every and version % self._config.table_every == 0:
            await self._show(version, batch)

    def evaluated(self, version: int, metrics: Mapping[str, float]) -> None:
        """An evaluation is complete; all names begin with `eval/`."""
        self._append(Row(version, metrics))

    def has_evaluation(self, version: int) -> bool:
        return self._metrics.has_evaluation(version)

    def _append(self, row: Row) -> None:
        try:
            self._metrics.append(row)
        except OSError as error:
            self._failed("metrics.jsonl", error)
            return
        self._failing.discard("metrics.jsonl")
        for follower in self._followers:
            follower.wake()

    async def _show(self, version: int, batch: Sequence[Judgement]) -> None:
        if self._show_step is None:
            return
        chosen = chosen_episodes(batch, self._config.table_episodes)
        try:
            episodes = await shown_episodes(self._bus, self._subjects, chosen, self._show_step)
            page = sample_page(self._subjects.run, version, episodes)
            write = partial(write_page, self._folder / "samples", version, page, keep=self._config.keep_tables)
            await anyio.to_thread.run_sync(write)
        except Exception as error:  # noqa: BLE001 - a bulkhead: what episodes hold is others' doing
            self._failed("samples", error)
            return
        self._failing.discard("samples")
        for follower in self._followers:
            follower.wake((version, episodes))

    def _failed(self, what: str, error: Exception) -> None:
        if what not in self._failing:
            _log.warning("tracking_failed", backend=what, error=str(error))
        self._failing.add(what)


@asynccontextmanager
async def open_tracking(
    folder: Path,
    *,
    bus: Bus,
    subjects: Subjects,
    log: LogConfig,
    backends: Mapping[str, OpenBackend] | None = None,
    show_step: ShowStep | None = None,
) -> AsyncIterator[Tracking]:
    """`folder`: the run's; `backends`: who follows its metrics, by name; `show_step`: draws steps, None shows none."""
    positions = folder / "tracking"
    positions.mkdir(mode=0o700, parents=True, exist_ok=True)
    metrics = folder / "metrics.jsonl"
    followers = [
        Follower(name, opened, metrics=metrics, position=positions / f"{name}.position")
        for name, opened in (backends or {}).items()
    ]
    try:
        yield Tracking(folder, followers, bus=bus, subjects=subjects, log=log, show_step=show_step)
    finally:
        with anyio.CancelScope(shield=True):
            for follower in followers:
                await anyio.to_thread.run_sync(follower.close, _CLOSE_S)
