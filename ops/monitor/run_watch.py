"""Watches one run from its streams, read-only, and says at any moment how it stands."""

import time
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, MutableSequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from bus.background import background
from bus.following import follow
from bus.lineage import Lineage
from bus.ports import Bus, Record
from bus.subjects import Subjects
from bus.topology import step_queue
from ops.monitor.outcomes import page_of
from ops.monitor.view import Curve, CurvePoint, Metrics, VersionMark
from schemas.bus_config import BusConfig
from schemas.errors import BusError
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import AnyMessage, Checkpoint, Heartbeat, Judgement, Split
from trainer.scores import score

_GATED = ("mismatch_k3", "mismatch_far")
_WINDOW = 256
_POINT_EVERY = 32
"""Episodes between two points of the training curve."""
_LATEST = 24
_MOST_PAGES = 200
_SPEED_S = 20.0
_DEPTH_S = 2.0


@dataclass
class Evaluation:
    """One evaluation round."""

    num_judged: int = 0
    num_scored: int = 0
    """Those with a verdict, without pages that success is not about."""
    num_successes: int = 0
    at_episode: int = 0
    """Training episodes read before its first result."""
    began_at: float = 0.0
    """When that was seen, on the watch's clock."""

    @property
    def success(self) -> float:
        return self.num_successes / self.num_scored if self.num_scored else 0.0


@dataclass
class RunState:
    """Folded from one rubric's judgements, CHECKPOINTS and HEARTBEATS; pure."""

    unseen_pages: frozenset[str] = frozenset()
    """Subdomains of evaluation tasks that are played, but are no part of its success."""
    num_read: int = 0
    """Training episodes whose judgements JUDGED still held, or got since."""
    num_steps: int = 0
    num_unparsed: int = 0
    num_unscored: int = 0
    """Failed, cancelled or without a verdict."""
    evaluations: dict[PolicyVersion, Evaluation] = field(default_factory=dict)
    points: list[CurvePoint] = field(default_factory=list)
    """By the number of episodes read."""
    versions: list[VersionMark] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    """Of the newest checkpoint."""
    mismatches: list[float] = field(default_factory=list)
    """Mean absolute differences of log-probabilities, nats, of each iteration that compared any."""
    gated: Mapping[str, float] = field(default_factory=dict)
    """What the trainer's mismatch gate went by last: metrics of `_GATED`."""
    staleness: list[float] = field(default_factory=list)
    """Largest of each iteration."""
    heartbeats: dict[WorkerId, Heartbeat] = field(default_factory=dict)
    num_played_by: dict[WorkerId, int] = field(default_factory=dict)
    num_by_page: dict[str, int] = field(default_factory=dict)
    """Training episodes by page or site, of those met first."""
    latest: deque[Judgement] = field(default_factory=lambda: deque(maxlen=_LATEST))
    """Of training episodes."""
    _waiting: MutableSequence[int] = field(default_factory=lambda: array("Q"))
    """Where judgements of training episodes stand on JUDGED that no version has consumed."""
    _judged_seq: int = 0
    """The furthest that versions have consumed; those of later passes over stored episodes end before it."""
    _num_consumed: int = 0
    """Up to there, since the run began."""
    _window: deque[bool] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    _judged_at: deque[float] = field(default_factory=deque)

    def apply(self, message: AnyMessage, now: float, seq: int = 0) -> None:
        """Takes one message in; `seq` of its record."""
        match message:
            case Judgement():
                self._judged(message, now, seq)
            case Checkpoint(version=version) if version > 0:
                self.metrics = message.metrics
                self.versions.append(VersionMark(num_episodes=message.num_trajectories, version=version))
                if "mismatch" in message.metrics:
                    self.mismatches.append(message.metrics["mismatch"])
                    self.gated = {name: value for name, value in message.metrics.items() if name in _GATED}
                self.staleness.append(message.metrics.get("staleness_max", 0.0))
                if message.judged_seq > self._judged_seq:
                    self._judged_seq, self._num_consumed = message.judged_seq, message.num_trajectories
                    del self._waiting[: bisect_right(self._waiting, self._judged_seq)]
            case Heartbeat():
                self.heartbeats[message.worker] = message
            case _:
                pass

    def _judged(self, judgement: Judgement, now: float, seq: int) -> None:
        trajectory = judgement.trajectory
        self.num_steps += trajectory.num_steps
        self.num_unparsed += trajectory.num_unparsed
        if trajectory.worker:  # an episode that was cancelled from outside was played by no one
            self.num_played_by[trajectory.worker] = self.num_played_by.get(trajectory.worker, 0) + 1
        scored = score(judgement)
        if judgement.split is Split.EVAL:
            version = trajectory.task.policy_version
            evaluation = self.evaluations.setdefault(version, Evaluation(at_episode=self.num_read, began_at=now))
            evaluation.num_judged += 1
            if trajectory.task.subdomain in self.unseen_pages:
                return
            evaluation.num_scored += scored is not None
            evaluation.num_successes += scored is not None and scored.success
            return
        self.num_read += 1
        if seq > self._judged_seq:
            self._waiting.append(seq)
        self.latest.append(judgement)
        page = page_of(trajectory.task.website)
        if page in self.num_by_page or len(self.num_by_page) < _MOST_PAGES:
            self.num_by_page[page] = self.num_by_page.get(page, 0) + 1
        self._judged_at.append(now)
        self._forget(now)
        if scored is None:
            self.num_unscored += 1
            return
        self._window.append(scored.success)
        if self.num_read % _POINT_EVERY == 0:
            self.points.append(CurvePoint(num_episodes=self.num_read, success=self.success or 0.0))

    @property
    def num_waiting(self) -> int:
        """Training episodes that are judged, and that no version has consumed."""
        return len(self._waiting)

    @property
    def num_episodes(self) -> int:
        """Training episodes judged since the run began."""
        return self.num_read + self._num_aged_out

    @property
    def _num_aged_out(self) -> int:
        """Training episodes that versions consumed, and whose judgements JUDGED held no more."""
        return max(0, self._num_consumed - (self.num_read - self.num_waiting))

    def num_evaluated(self, version: PolicyVersion) -> int:
        evaluation = self.evaluations.get(version)
        return evaluation.num_judged if evaluation else 0

    @property
    def success(self) -> float | None:
        """Of the latest training episodes."""
        return sum(self._window) / len(self._window) if self._window else None

    @property
    def parse_rate(self) -> float | None:
        return 1.0 - self.num_unparsed / self.num_steps if self.num_steps else None

    def episodes_per_s(self, now: float) -> float | None:
        self._forget(now)
        return len(self._judged_at) / _SPEED_S if self._judged_at else None

    def _forget(self, now: float) -> None:
        while self._judged_at and now - self._judged_at[0] > _SPEED_S:
            self._judged_at.popleft()

    def curve(self, *, bar: float | None, num_expected: int, bar_label: str = "") -> Curve:
        before = self._num_aged_out
        held_out = (CurvePoint(num_episodes=each.at_episode, success=each.success) for each in self.evaluations.values())
        return Curve(
            train=_behind(before, self.points),
            held_out=_behind(before, held_out),
            versions=tuple(self.versions),
            bar=bar,
            bar_label=bar_label,
            num_expected=num_expected,
        )

    def metrics_now(self, now: float, *, max_staleness: int | None, queue_depth: int | None) -> Metrics:
        return Metrics(
            num_episodes=self.num_episodes,
            success=self.success,
            success_window=len(self._window),
            version=self.versions[-1].version if self.versions else 0,
            staleness=self.metrics.get("staleness_mean"),
            max_staleness=max_staleness,
            parse_rate=self.parse_rate,
            mismatch=self.mismatches[-1] if self.mismatches else None,
            queue_depth=queue_depth,
            episodes_per_s=self.episodes_per_s(now),
        )


def _behind(num_episodes: int, points: Iterable[CurvePoint]) -> tuple[CurvePoint, ...]:
    return tuple(CurvePoint(num_episodes=num_episodes + point.num_episodes, success=point.success) for point in points)


class RunWatch:
    """Keeps a `RunState` current; `run` it beside whoever looks at it."""

    def __init__(self, bus: Bus, subjects: Subjects, config: BusConfig, *, unseen_pages: frozenset[str] = frozenset()) -> None:
        self.state = RunState(unseen_pages=unseen_pages)
        self.queue_depth: int | None = None
        self._bus = bus
        self._subjects = subjects
        self._config = config
        self._changed = anyio.Event()
        self._lineage = Lineage()

    async def wait_until(self, holds: Callable[[RunState], bool]) -> None:
        """Returns when `holds` is true of the state, as far as it has been read."""
        while not holds(self.state):
            await self._changed.wait()

    async def run(self) -> None:
        names = self._subjects
        sources: Mapping[str, str] = {
            names.judged: names.judgements_by(self._config.trained_rubric),
            names.checkpoints: names.everything("checkpoint"),
            names.heartbeats: names.everything("heartbeat"),
        }
        async with anyio.create_task_group() as group:
            for stream, subject in sources.items():
                group.start_soon(follow, self._bus, stream, subject, self._take)
            group.start_soon(self._measure_depth)

    def _take(self, record: Record) -> None:
        if isinstance(record.message, Checkpoint) and not self._lineage.takes(record):
            return
        self.state.apply(record.message, time.monotonic(), record.seq)
        self._changed.set()
        self._changed = anyio.Event()

    async def _measure_depth(self) -> None:
        queues = [step_queue(self._subjects, self._config, split) for split in Split]
        while True:
            try:
                depths = [await self._bus.depth(queue) for queue in queues]
                self.queue_depth = sum(depth.num_pending + depth.num_in_flight for depth in depths if depth)
            except BusError:
                self.queue_depth = None
            await anyio.sleep(_DEPTH_S)


@asynccontextmanager
async def watching(bus: Bus, subjects: Subjects, config: BusConfig) -> AsyncIterator[RunWatch]:
    """A watch that is kept current while the context is open."""
    watch = RunWatch(bus, subjects, config)
    async with background(watch.run):
        yield watch
