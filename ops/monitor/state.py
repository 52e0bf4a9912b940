"""Everything that a monitor knows of a run: folded from messages and measurements, with time passed in. Pure.

Invariant: memory is bounded by `monitor_config.max_cells`, the workers, a few numbers for every version and for every 32
episodes (the curve), and one for every training episode that no version has consumed; no message is kept.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from bus.lineage import Lineage
from bus.ports import Record, StoreState, StreamState
from bus.served import ServedVersions
from ops.monitor.cells import LIVE, Cells
from ops.monitor.judging import Judging
from ops.monitor.outcomes import Outcomes
from ops.monitor.queues import QueueState
from ops.monitor.rates import Rate
from ops.monitor.run_watch import RunState
from ops.monitor.workers import Worker, Workers
from ops.statistics.blocking import Blocking
from schemas.messages import (
    Checkpoint,
    DeadLetter,
    EpisodeStart,
    Fault,
    Heartbeat,
    Judgement,
    LetterResent,
    Role,
    ServedVersion,
    StepPhase,
    Task,
    Trajectory,
)
from schemas.monitor_config import MonitorConfig
from schemas.text import visible

_Place = tuple[str, int]
"""A stream, and a sequence on it."""
_RATE_S = 60.0
_ANSWERS = 15
_LATEST_VERSIONS = 9
_MOST_SITES = 200
"""And egresses, whose blocks are counted one by one."""


@dataclass
class Server:
    """How the server answers this monitor."""

    answered_at: float = 0.0
    """0: never yet."""
    error: str = ""
    """Of the newest request; empty: it was answered."""
    times_s: deque[float] = field(default_factory=lambda: deque(maxlen=_ANSWERS))
    """Of the latest answers."""

    def answered(self, seconds: float, now: float) -> None:
        self.answered_at, self.error = now, ""
        self.times_s.append(seconds)

    @property
    def answer_s(self) -> float | None:
        """The median."""
        return sorted(self.times_s)[len(self.times_s) // 2] if self.times_s else None


@dataclass(frozen=True, slots=True)
class Disk:
    """Of the run folder's own server, where it is on this machine."""

    path: str
    num_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Surprise:
    """The newest error that nobody foresaw at one worker."""

    error: str
    item: str
    at: float
    number: int = 1
    """How many there are, with those before it."""


class MonitorState:
    def __init__(self, config: MonitorConfig, *, began_at: float) -> None:
        self.began_at = began_at
        self.run = RunState()
        self.judging = Judging()
        self.blocking = Blocking(_MOST_SITES)
        self.outcomes = Outcomes()
        self.workers = Workers(config.worker_silent_s, config.worker_forgotten_s)
        self.policies = ServedVersions()
        self.cells = Cells(config.ended_cell_s, config.max_cells)
        self.queues: dict[str, QueueState] = {}
        """By name, in the order of an episode's way."""
        self.streams: dict[str, StreamState] = {}
        self.store: StoreState | None = None
        self.disk: Disk | None = None
        self.server = Server()
        self.letters: dict[_Place, str] = {}
        """The streams of dead letters that are stored, and that nobody has sent again, by where the letters stand."""
        self._resent: set[_Place] = set()
        self.surprises: dict[str, Surprise] = {}
        """By worker; forgotten after `monitor_config.unexpected_shown_s`."""
        self.num_passed_over = 0
        """Records that this monitor could not take in."""
        self._unexpected_shown_s = config.unexpected_shown_s
        self._lineage = Lineage()
        self.version_times: deque[float] = deque(maxlen=64)
        """When the latest versions were announced."""
        self.begin(began_at)
        self.judged = Rate(_RATE_S)

    def begin(self, at: float) -> None:
        """Rates are those of what comes from now on."""
        self.began_at = at
        self.ended = Rate(_RATE_S, at)
        self.steps = Rate(_RATE_S, at)

    def heard(self, record: Record, now: float) -> None:
        """One message that was published just now, and may never be stored."""
        message = record.message
        match message:
            case StepPhase():
                if message.phase == "acting":
                    self.steps.add(1, now)
            case Trajectory():
                known = self.cells.by_episode.get(message.episode)
                if known is None or known.phase in LIVE:
                    self.ended.add(1, now)
            case Task() | EpisodeStart():
                pass
            case _:
                return
        self.cells.apply(message, now)

    def stored(self, record: Record, now: float) -> None:
        """One record of JUDGED (one rubric's), CHECKPOINTS, SERVED, HEARTBEATS or ADVISORIES, in the stream's order."""
        message, at = record.message, record.time_s or now
        match message:
            case Judgement():
                self.judging.apply(message)
                self.outcomes.apply(message)
                self.blocking.add(message.trajectory, ruled_blocked=message.blocked)
                self.judged.add(1, at)
                self.run.apply(message, at, record.seq)
                # One that was judged long ago, and not acknowledged since, leaves at once.
                self.cells.apply(message, min(at, now))
            case Checkpoint() if self._lineage.takes(record):
                self.run.apply(message, at, record.seq)
                if message.version > 0:
                    self.version_times.append(at)
            case Heartbeat():
                self.workers.heard(message, stored_at=record.time_s, now=now)
                self.policies.apply(message, self.workers.by_name[message.worker].heard_at)
            case ServedVersion():
                self.policies.apply(message, now, record.seq)
            case DeadLetter():
                if (place := (record.stream, record.seq)) not in self._resent:
                    self.letters[place] = message.stream
            case LetterResent():
                # The two are read beside each other: either may come first.
                self._resent.add(place := (record.stream, message.letter_seq))
                self.letters.pop(place, None)
            case Fault():
                self._surprised(message, at)
            case _:
                pass

    def _surprised(self, fault: Fault, at: float) -> None:
        worker = visible(fault.worker)
        before = self.surprises.get(worker)
        error = visible(f"{fault.error} ({fault.place})")
        self.surprises[worker] = Surprise(error, visible(fault.item), at, 1 + (before.number if before else 0))

    def expire(self, now: float) -> None:
        """Call now and then."""
        self.cells.expire(now)
        self.workers.expire(now)
        for worker in [name for name, met in self.surprises.items() if now - met.at > self._unexpected_shown_s]:
            del self.surprises[worker]
        self.letters = {place: stream for place, stream in self.letters.items() if not self._has_aged_out(place)}
        self._resent = {place for place in self._resent if not self._has_aged_out(place)}

    def _has_aged_out(self, place: _Place) -> bool:
        stream, seq = place
        return stream in self.streams and seq < self.streams[stream].first_seq

    def metrics_of(self, worker: Worker) -> dict[str, float]:
        """What a worker says of itself; of a policy, also the version that it serves."""
        said = self.policies.of(worker.name)
        return worker.metrics if said is None else worker.metrics | {"version": float(said.version)}

    @property
    def version(self) -> int:
        """The newest; 0: the run's first weights."""
        return self.run.versions[-1].version if self.run.versions else 0

    @property
    def versions_per_h(self) -> float | None:
        """Over the latest of them."""
        times = list(self.version_times)[-_LATEST_VERSIONS:]
        return (len(times) - 1) / (times[-1] - times[0]) * 3600.0 if len(times) > 1 and times[-1] > times[0] else None

    def ends_at(self, num_versions: int, now: float) -> float | None:
        """When the last of so many versions may be expected, from how long the latest took; None: it cannot be told yet."""
        missing, per_h = num_versions - self.version, self.versions_per_h
        if missing <= 0 or per_h is None:
            return None
        each_s = 3600.0 / per_h
        return max(self.version_times[-1] + each_s, now) + (missing - 1) * each_s

    @property
    def evaluation_size(self) -> int | None:
        """Episodes of a held-out round, as the feeder says; None: it was not heard."""
        told = (worker.metrics.get("eval_episodes") for worker in self.workers.by_name.values() if worker.role is Role.FEEDER)
        return next((int(size) for size in told if size), None)

    @property
    def staleness(self) -> dict[int, float]:
        """Of the batch that the newest version was trained on: shares, or numbers, of episodes by versions behind."""
        return _histogram(self.run.metrics)


def _histogram(metrics: Mapping[str, float]) -> dict[int, float]:
    prefix = "staleness_"
    found = {name.removeprefix(prefix): value for name, value in metrics.items() if name.startswith(prefix)}
    return {int(lag): value for lag, value in sorted(found.items()) if lag.isdecimal()}
